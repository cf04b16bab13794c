#include "table/merge/update_order.h"

#include "table/format/key_order.h"

namespace nacre {

UpdateRef UpdateOrder::Ref(uint64_t tag, const Slice& key, const Slice& value) const {
  return {.prefix = bytewise_ ? BytewiseKeyOrder::Prefix(key) : 0,
          .tag = tag,
          .key_data = key.data(),
          .value_data = value.data(),
          .key_size = static_cast<uint32_t>(key.size()),
          .value_size = static_cast<uint32_t>(value.size())};
}

bool UpdateOrder::IsBefore(const UpdateRef& a, const UpdateRef& b) const {
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  const int order = comparator_->Compare(a.key(), b.key());
  return order != 0 ? order < 0 : a.tag > b.tag;
}

void UpdateOrder::Sort(std::vector<UpdateItem>* items) const {
  const auto is_before = [this](const UpdateRef& a, const UpdateRef& b) { return IsBefore(a, b); };
  UpdateSort<UpdateRef, decltype(is_before)>(bytewise_, is_before).Sort(*items);
}

}  // namespace nacre
