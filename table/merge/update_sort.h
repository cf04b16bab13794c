#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nacre/slice.h"
#include "table/format/key_order.h"

namespace nacre {

/// What is moved about when updates are sorted: a reference to one of them and its key's prefix by
/// the order (table/format/key_order.h), which is 0 if the order has no prefixes.
template <typename Update>
struct SortItem {
  uint64_t prefix;
  const Update* update;
};

/// Sorts references to updates, by radix where the order is that of bytes: a word of the keys at a
/// time, after the bytes that they have in common. An `Update` has a `key()`.
///
/// Thread safety: none; the updates may be shared.
template <typename Update, typename IsBefore>
class UpdateSort {
 public:
  /// `is_before(a, b)`: whether `a` comes before `b`, which is asked where prefixes do not decide.
  UpdateSort(bool bytewise, IsBefore is_before)
      : bytewise_(bytewise), is_before_(std::move(is_before)) {}

  /// Each item's `prefix` is that of its update. The updates, and the bytes of their keys, do not
  /// change meanwhile. Throws what `is_before` throws; the items are then in some other order, and
  /// what their prefixes are is open.
  void Sort(std::span<SortItem<Update>> items) {
    if (!items.empty()) SortByPrefix(items);
  }

 private:
  using Item = SortItem<Update>;

  /// Fewer are compared: counting costs more than it spares.
  static constexpr size_t kLeastForRadix = 256;

  void SortByPrefix(std::span<Item> items) {
    RadixSort(items);
    for (auto begin = items.begin(); begin != items.end();) {
      const auto end = std::find_if(begin, items.end(), [prefix = begin->prefix](const Item& item) {
        return item.prefix != prefix;
      });
      if (end - begin > 1) SortTies({begin, end});
      begin = end;
    }
  }

  /// Least significant byte first; bytes that are the same in all prefixes cost nothing.
  void RadixSort(std::span<Item> items) {
    const auto is_before = [](const Item& a, const Item& b) { return a.prefix < b.prefix; };
    if (std::is_sorted(items.begin(), items.end(), is_before)) return;  // As many loads are.
    if (items.size() < kLeastForRadix) {
      std::sort(items.begin(), items.end(), is_before);
      return;
    }
    constexpr size_t kBytes = sizeof(uint64_t);
    std::array<std::array<size_t, 256>, kBytes> counts{};
    for (const Item& item : items) {
      for (size_t byte = 0; byte < kBytes; ++byte) ++counts[byte][item.prefix >> 8 * byte & 0xff];
    }
    if (scratch_.size() < items.size()) scratch_.resize(items.size());
    std::span<Item> from = items;
    std::span<Item> to(scratch_.data(), items.size());
    for (size_t byte = 0; byte < kBytes; ++byte) {
      const auto digit = [byte](const Item& item) { return item.prefix >> 8 * byte & 0xff; };
      if (counts[byte][digit(from.front())] == from.size()) continue;
      size_t begin = 0;
      for (size_t& count : counts[byte]) begin += std::exchange(count, begin);
      for (const Item& item : from) to[counts[byte][digit(item)]++] = item;
      std::swap(from, to);
    }
    if (from.data() != items.data()) std::copy(from.begin(), from.end(), items.begin());
  }

  /// Updates whose keys have the same prefix.
  void SortTies(std::span<Item> ties) {
    if (bytewise_ && ties.size() >= kLeastForRadix) {
      const size_t common = CommonBytes(ties);
      const uint64_t prefix = ties.front().prefix;
      bool differ = false;
      for (Item& item : ties) {
        Slice rest = item.update->key();
        rest.remove_prefix(common);
        item.prefix = BytewiseKeyOrder::Prefix(rest);
        differ = differ || item.prefix != ties.front().prefix;
      }
      if (differ) SortByPrefix(ties);
      for (Item& item : ties) item.prefix = prefix;
      if (differ) return;
    }
    std::sort(ties.begin(), ties.end(),
              [this](const Item& a, const Item& b) { return is_before_(*a.update, *b.update); });
  }

  /// Bytes that all keys begin with.
  static size_t CommonBytes(std::span<const Item> items) {
    const Slice first = items.front().update->key();
    size_t common = first.size();
    for (const Item& item : items) {
      const Slice key = item.update->key();
      common = std::min(common, key.size());
      common = static_cast<size_t>(
          std::mismatch(first.data(), first.data() + common, key.data()).first - first.data());
    }
    return common;
  }

  const bool bytewise_;
  const IsBefore is_before_;
  std::vector<Item> scratch_;
};

}  // namespace nacre
