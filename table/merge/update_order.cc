#include "table/merge/update_order.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "table/format/key_order.h"

namespace nacre {
namespace {

/// Fewer are compared: counting costs more than it spares.
constexpr size_t kLeastForRadix = 256;

/// Least significant byte first; bytes that are the same in all prefixes cost nothing.
void RadixSortByPrefix(std::span<UpdateItem> items, std::vector<UpdateItem>* scratch) {
  constexpr size_t kBytes = sizeof(uint64_t);
  std::array<std::array<size_t, 256>, kBytes> counts{};
  for (const UpdateItem& item : items) {
    for (size_t byte = 0; byte < kBytes; ++byte) ++counts[byte][item.prefix >> 8 * byte & 0xff];
  }
  if (scratch->size() < items.size()) scratch->resize(items.size());
  std::span<UpdateItem> from = items;
  std::span<UpdateItem> to(scratch->data(), items.size());
  for (size_t byte = 0; byte < kBytes; ++byte) {
    const auto digit = [byte](const UpdateItem& item) { return item.prefix >> 8 * byte & 0xff; };
    if (counts[byte][digit(from.front())] == from.size()) continue;
    size_t begin = 0;
    for (size_t& count : counts[byte]) begin += std::exchange(count, begin);
    for (const UpdateItem& item : from) to[counts[byte][digit(item)]++] = item;
    std::swap(from, to);
  }
  if (from.data() != items.data()) std::copy(from.begin(), from.end(), items.begin());
}

/// Bytes that all keys begin with.
size_t CommonBytes(std::span<const UpdateItem> items) {
  const Slice first = items.front().update->key();
  size_t common = first.size();
  for (const UpdateItem& item : items) {
    const Slice key = item.update->key();
    common = std::min(common, key.size());
    common = static_cast<size_t>(
        std::mismatch(first.data(), first.data() + common, key.data()).first - first.data());
  }
  return common;
}

}  // namespace

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
  std::vector<UpdateItem> scratch;
  if (!items->empty()) SortByRadix(*items, &scratch);
}

void UpdateOrder::SortByRadix(std::span<UpdateItem> items, std::vector<UpdateItem>* scratch) const {
  RadixSortByPrefix(items, scratch);
  for (auto begin = items.begin(); begin != items.end();) {
    const auto end = std::find_if(
        begin, items.end(),
        [prefix = begin->prefix](const UpdateItem& item) { return item.prefix != prefix; });
    if (end - begin > 1) SortTies({begin, end}, scratch);
    begin = end;
  }
}

void UpdateOrder::SortTies(std::span<UpdateItem> ties, std::vector<UpdateItem>* scratch) const {
  if (bytewise_ && ties.size() >= kLeastForRadix) {
    const size_t common = CommonBytes(ties);
    bool differ = false;
    for (UpdateItem& item : ties) {
      Slice rest = item.update->key();
      rest.remove_prefix(common);
      item.prefix = BytewiseKeyOrder::Prefix(rest);
      differ = differ || item.prefix != ties.front().prefix;
    }
    if (differ) return SortByRadix(ties, scratch);
  }
  std::sort(ties.begin(), ties.end(), [this](const UpdateItem& a, const UpdateItem& b) {
    return IsBefore(*a.update, *b.update);
  });
}

}  // namespace nacre
