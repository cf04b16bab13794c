#include "transactions/batch_lookup.h"

#include <algorithm>
#include <iterator>

namespace nacre {

BatchLookup LookUp(const BatchIndex& index, uint32_t family, const Slice& key) {
  BatchLookup result;
  BatchIndex::Cursor at = index.At({family, &key, /*behind=*/true});
  while (at != index.begin()) {
    --at;
    if (at->family != family || index.Compare(family, index.KeyOf(*at), key) != 0) break;
    const BatchItem item = index.ItemOf(*at);
    if (item.type == ValueType::kMerge) {
      result.operands.push_back(item.value);
      continue;
    }
    const bool deleted = IsDeletion(item.type);
    result.base = deleted ? BatchLookup::Base::kDeleted : BatchLookup::Base::kValue;
    result.value = item.value;
    break;
  }
  std::reverse(result.operands.begin(), result.operands.end());
  return result;
}

}  // namespace nacre
