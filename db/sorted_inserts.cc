#include "db/sorted_inserts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "db/key_order.h"
#include "util/hash.h"
#include "util/thread.h"

namespace nacre {
namespace {

/// Below this a thread costs more than it saves.
constexpr size_t kUpdatesPerThread = 4096;
/// Looked at for each range, for ranges that differ by a tenth or so.
constexpr size_t kSamplesPerRange = 256;
/// How far ahead bytes are asked for: they lie in the order of the log. A power of two.
constexpr size_t kAhead = 8;

/// Least significant byte first; bytes that are the same in all prefixes cost nothing.
template <typename Item>
void RadixSortByPrefix(std::vector<Item>* items) {
  constexpr size_t kBytes = sizeof(uint64_t);
  std::array<std::array<size_t, 256>, kBytes> counts{};
  for (const Item& item : *items) {
    for (size_t byte = 0; byte < kBytes; ++byte) ++counts[byte][item.prefix >> 8 * byte & 0xff];
  }
  std::vector<Item> sorted(items->size());
  for (size_t byte = 0; byte < kBytes; ++byte) {
    const auto digit = [byte](const Item& item) { return item.prefix >> 8 * byte & 0xff; };
    if (counts[byte][digit(items->front())] == items->size()) continue;
    size_t begin = 0;
    for (size_t& count : counts[byte]) begin += std::exchange(count, begin);
    for (const Item& item : *items) sorted[counts[byte][digit(item)]++] = item;
    items->swap(sorted);
  }
}

}  // namespace

void SortedInserts::Add(size_t part, SequenceNumber sequence, ValueType type, const Slice& key,
                        const Slice& value) {
  const bool bytewise = comparator_ == BytewiseComparator();
  parts_[part].push_back({.prefix = bytewise ? BytewiseKeyOrder::Prefix(key) : 0,
                          .tag = PackTag(sequence, type),
                          .key_data = key.data(),
                          .value_data = value.data(),
                          .key_size = static_cast<uint32_t>(key.size()),
                          .value_size = static_cast<uint32_t>(value.size())});
}

void SortedInserts::DropFrom(size_t parts) {
  if (parts < parts_.size()) parts_.resize(parts);
}

bool SortedInserts::IsBefore(const Update& a, const Update& b) const {
  if (a.prefix != b.prefix) return a.prefix < b.prefix;
  const int order = comparator_->Compare(a.key(), b.key());
  return order != 0 ? order < 0 : a.tag > b.tag;
}

std::vector<const SortedInserts::Update*> SortedInserts::Cut(size_t ranges) const {
  if (ranges < 2) return {};
  size_t count = 0;
  for (const Part& part : parts_) count += part.size();
  const size_t step = std::max<size_t>(1, count / (ranges * kSamplesPerRange));
  std::vector<const Update*> sample;
  for (const Part& part : parts_) {
    for (size_t i = 0; i < part.size(); i += step) sample.push_back(&part[i]);
  }
  std::sort(sample.begin(), sample.end(),
            [this](const Update* a, const Update* b) { return IsBefore(*a, *b); });
  std::vector<const Update*> cuts;
  for (size_t range = 1; range < ranges; ++range) {
    cuts.push_back(sample[range * sample.size() / ranges]);
  }
  return cuts;
}

SortedInserts::Items SortedInserts::Range(const Update* begin, const Update* end,
                                          size_t expected) const {
  const uint64_t lowest = begin == nullptr ? 0 : begin->prefix;
  const uint64_t highest = end == nullptr ? UINT64_MAX : end->prefix;
  Items items;
  items.reserve(expected);
  for (const Part& part : parts_) {
    for (const Update& update : part) {
      if (update.prefix < lowest || update.prefix > highest) continue;
      if (update.prefix == lowest && begin != nullptr && IsBefore(update, *begin)) continue;
      if (update.prefix == highest && end != nullptr && !IsBefore(update, *end)) continue;
      items.push_back({.prefix = update.prefix, .update = &update});
    }
  }
  return items;
}

void SortedInserts::Sort(Items* items) const {
  if (items->empty()) return;
  RadixSortByPrefix(items);
  for (auto begin = items->begin(); begin != items->end();) {
    const auto end = std::find_if(begin, items->end(), [prefix = begin->prefix](const Item& item) {
      return item.prefix != prefix;
    });
    if (end - begin > 1) {
      std::sort(begin, end,
                [this](const Item& a, const Item& b) { return IsBefore(*a.update, *b.update); });
    }
    begin = end;
  }
}

void SortedInserts::SortAndInsert(MemTable* memtable, const Update* begin, const Update* end,
                                  size_t expected) const {
  Items items = Range(begin, end, expected);
  Sort(&items);
  bool new_chunk = false;
  uint64_t hashes[kAhead];
  // The update comes first, then its key, then what its hash leads to.
  for (size_t i = 0; i < items.size() + 3 * kAhead; ++i) {
    if (i < items.size()) __builtin_prefetch(items[i].update);
    if (i >= kAhead && i - kAhead < items.size()) {
      __builtin_prefetch(items[i - kAhead].update->key_data);
    }
    if (i >= 3 * kAhead) {
      const Update& update = *items[i - 3 * kAhead].update;
      memtable->AddKept(TagSequence(update.tag), TagType(update.tag), update.key(),
                        hashes[i % kAhead], update.value(), &new_chunk);
    }
    if (i >= 2 * kAhead && i - 2 * kAhead < items.size()) {
      uint64_t& hash = hashes[i % kAhead];
      hash = Hash64(items[i - 2 * kAhead].update->key());
      memtable->Prefetch(hash);
    }
  }
}

void SortedInserts::InsertInto(MemTable* memtable, size_t threads) {
  size_t count = 0;
  for (const Part& part : parts_) count += part.size();
  const size_t ranges =
      std::clamp<size_t>(count / kUpdatesPerThread, 1, std::max<size_t>(threads, 1));
  const std::vector<const Update*> cuts = Cut(ranges);
  const size_t expected = count / ranges + count / ranges / 8;
  RunTogether("nacre-open", cuts.size() + 1, [&](size_t i) {
    SortAndInsert(memtable, i == 0 ? nullptr : cuts[i - 1], i < cuts.size() ? cuts[i] : nullptr,
                  expected);
  });
}

}  // namespace nacre
