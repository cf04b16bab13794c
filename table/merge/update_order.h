#pragma once

#include <cstdint>
#include <vector>

#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "table/format/internal_key.h"
#include "table/merge/update_sort.h"

namespace nacre {

/// An update whose bytes are kept elsewhere.
struct UpdateRef {
  /// The key's prefix, if the order has such a thing: it decides most comparisons.
  uint64_t prefix;
  uint64_t tag;
  const char* key_data;
  const char* value_data;
  uint32_t key_size;
  uint32_t value_size;

  Slice key() const { return {key_data, key_size}; }
  Slice value() const { return {value_data, value_size}; }
};

using UpdateItem = SortItem<UpdateRef>;

/// The order of updates in a MemTable and in tables: user key ascending, then tag descending.
/// Thread safety: all methods may be called from many threads at once.
class UpdateOrder {
 public:
  /// `comparator` is not owned and outlives this.
  explicit UpdateOrder(const Comparator* comparator)
      : comparator_(comparator), bytewise_(comparator == BytewiseComparator()) {}

  UpdateRef Ref(uint64_t tag, const Slice& key, const Slice& value) const;
  bool IsBefore(const UpdateRef& a, const UpdateRef& b) const;
  /// Sorts by radix, a word of the keys at a time after their common prefix, where the order is
  /// that of bytes; else by comparisons. Each item's `prefix` is that of its update. The
  /// updates, and the bytes of their keys, must not change meanwhile.
  void Sort(std::vector<UpdateItem>* items) const;

 private:
  const Comparator* const comparator_;
  const bool bytewise_;
};

}  // namespace nacre
