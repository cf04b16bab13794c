#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "nacre/column_family.h"
#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "nacre/write_batch.h"
#include "table/format/write_batch_format.h"

namespace nacre {

/// The index of WriteBatchWithIndex: it orders the updates of a batch by family, key and age.
///
/// Entries name places in the batch, not memory, so the batch may grow. An entry whose place is
/// changed (an overwritten key's) stays where it is in the order: it is the last one of its key.
/// Methods that compare throw what the comparators throw, and have changed nothing then. Thread
/// safety: none; const methods may be called together.
class BatchIndex {
 public:
  struct Entry {
    uint32_t family;
    size_t key_at;  ///< The key's place in the batch.
    size_t key_size;
    mutable size_t at;  ///< The update's place in the batch.
  };
  /// A place between entries: before or behind all updates of a key or, if that is null, of a
  /// family.
  struct Place {
    uint32_t family;
    const Slice* key;
    bool behind;
  };
  class Less {
   public:
    using is_transparent = void;
    explicit Less(const BatchIndex* index) : index_(index) {}
    bool operator()(const Entry& a, const Entry& b) const;
    bool operator()(const Entry& a, const Place& b) const;
    bool operator()(const Place& a, const Entry& b) const { return !operator()(b, a); }

   private:
    const BatchIndex* index_;
  };
  using Entries = std::set<Entry, Less>;
  using Cursor = Entries::const_iterator;

  /// `batch` and `comparator` outlive this; the latter orders families that have no comparator of
  /// their own.
  BatchIndex(const WriteBatch* batch, const Comparator* comparator, bool overwrite);
  BatchIndex(const BatchIndex&) = delete;
  BatchIndex& operator=(const BatchIndex&) = delete;

  /// Learns how the family's keys are ordered. Must precede its first update.
  void NoteFamily(ColumnFamilyHandle* family);
  /// The update that was added to the batch at `at`.
  void Add(size_t at) { AddTo(&entries_, at); }
  /// Indexes the batch anew after it was cut. `Corruption` if it is malformed; then, and if a
  /// comparator throws, the index stays as it was.
  Status Rebuild();
  /// Must be called after the batch was cleared.
  void Clear() { entries_.clear(); }

  int Compare(uint32_t family, const Slice& a, const Slice& b) const {
    return ComparatorOf(family)->Compare(a, b);
  }
  Slice KeyOf(const Entry& entry) const {
    return {batch_->Data().data() + entry.key_at, entry.key_size};
  }
  /// The update; views the batch.
  BatchItem ItemOf(const Entry& entry) const;

  Cursor At(const Place& place) const { return entries_.lower_bound(place); }
  Cursor begin() const { return entries_.begin(); }
  Cursor end() const { return entries_.end(); }

 private:
  const Comparator* ComparatorOf(uint32_t family) const;
  void AddTo(Entries* entries, size_t at) const;

  const WriteBatch* const batch_;
  const Comparator* const comparator_;
  const bool overwrite_;
  std::map<uint32_t, const Comparator*> comparators_;
  Entries entries_;
};

}  // namespace nacre
