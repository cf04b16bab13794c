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
/// Thread safety: `Add` by one thread for each part at a time; nothing beside `InsertInto`.
class SortedInserts {
 public:
  /// `comparator` is not owned and outlives this. Updates are added in `parts` parts.
  SortedInserts(const Comparator* comparator, size_t parts)
      : comparator_(comparator), parts_(parts) {}

  /// Key and value stay where they are until InsertInto has returned; a value that is not small
  /// lies in the memory of the MemTable's arena, and is not copied.
  void Add(size_t part, SequenceNumber sequence, ValueType type, const Slice& key,
           const Slice& value);
  /// Forgets the parts from `parts` on.
  void DropFrom(size_t parts);
  /// All of them, with at most `threads` threads, of which the caller is one. Once only.
  void InsertInto(MemTable* memtable, size_t threads);

 private:
  struct Update {
    uint64_t prefix;  ///< Of the key, if the order has such a thing: decides most comparisons.
    uint64_t tag;
    const char* key_data;
    const char* value_data;
    uint32_t key_size;
    uint32_t value_size;

    Slice key() const { return {key_data, key_size}; }
    Slice value() const { return {value_data, value_size}; }
  };
  using Part = std::vector<Update>;
  /// What is moved about when updates are sorted.
  struct Item {
    uint64_t prefix;
    const Update* update;
  };
  using Items = std::vector<Item>;

  bool IsBefore(const Update& a, const Update& b) const;
  /// First updates of the second and later of `ranges` ranges of about one size.
  std::vector<const Update*> Cut(size_t ranges) const;
  /// Those in [begin, end), about as many as `expected`; null is an end of the order.
  Items Range(const Update* begin, const Update* end, size_t expected) const;
  void Sort(Items* items) const;
  void SortAndInsert(MemTable* memtable, const Update* begin, const Update* end,
                     size_t expected) const;

  const Comparator* const comparator_;
  std::vector<Part> parts_;
};

}  // namespace nacre
