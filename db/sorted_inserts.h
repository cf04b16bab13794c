#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "db/memtable.h"
#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "table/internal_key.h"

namespace nacre {

/// Collects updates and puts them into a MemTable in the order of their keys, several threads a
/// range of keys each: an insert beside the one before it needs no search, which is most of what
/// one elsewhere costs. For the replay of a log.
///
/// Thread safety: none.
class SortedInserts {
 public:
  /// Not owned, outlives this.
  explicit SortedInserts(const Comparator* comparator) : comparator_(comparator) {}

  /// Key and value stay where they are until InsertInto has returned.
  void Add(SequenceNumber sequence, ValueType type, const Slice& key, const Slice& value);
  /// All of them, with at most `threads` threads, of which the caller is one. Once only.
  void InsertInto(MemTable* memtable, size_t threads);

 private:
  struct Update {
    uint64_t prefix;  ///< Of the key, if the order has such a thing: decides most comparisons.
    SequenceNumber sequence;
    Slice key;
    Slice value;
    ValueType type;
  };
  using Iterator = std::vector<Update>::iterator;

  bool IsBefore(const Update& a, const Update& b) const;
  void SortAndInsert(MemTable* memtable, Iterator begin, Iterator end) const;

  const Comparator* const comparator_;
  std::vector<Update> updates_;
};

}  // namespace nacre
