#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "db/memtable/memtable.h"
#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "table/format/internal_key.h"
#include "table/merge/update_order.h"

namespace nacre {

/// Collects updates and puts them into a MemTable in the order of their keys, several threads a
/// range of keys each: an insert beside the one before it needs no search, which is most of what
/// one elsewhere costs. For the replay of a log.
///
/// Thread safety: `Add` by one thread for each part at a time; nothing beside `InsertInto`.
class SortedInserts {
 public:
  /// `comparator` is not owned and outlives this. Updates are added in `parts` parts.
  SortedInserts(const Comparator* comparator, size_t parts) : order_(comparator), parts_(parts) {}

  /// Key and value stay where they are until InsertInto has returned; a value that is not small
  /// lies in the memory of the MemTable's arena, and is not copied.
  void Add(size_t part, SequenceNumber sequence, ValueType type, const Slice& key,
           const Slice& value);
  bool empty() const {
    return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.empty(); });
  }
  /// Forgets the parts from `parts` on.
  void DropFrom(size_t parts);
  /// All of them, with at most `threads` threads, of which the caller is one. Once only.
  void InsertInto(MemTable* memtable, size_t threads);

 private:
  using Update = UpdateRef;
  using Part = std::vector<Update>;
  using Items = std::vector<UpdateItem>;

  /// First updates of the second and later of `ranges` ranges of about one size.
  std::vector<const Update*> Cut(size_t ranges) const;
  /// Those in [begin, end), about as many as `expected`; null is an end of the order.
  Items Range(const Update* begin, const Update* end, size_t expected) const;
  void SortAndInsert(MemTable* memtable, const Update* begin, const Update* end,
                     size_t expected) const;

  const UpdateOrder order_;
  std::vector<Part> parts_;
};

}  // namespace nacre
