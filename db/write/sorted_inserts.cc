#include "db/write/sorted_inserts.h"

#include <algorithm>

#include "util/hash.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

/// Below this a thread costs more than it saves.
constexpr size_t kUpdatesPerThread = 4096;
/// Looked at for each range, for ranges that differ by a tenth or so.
constexpr size_t kSamplesPerRange = 256;
/// How far ahead bytes are asked for: they lie in the order of the log. A power of two.
constexpr size_t kAhead = 8;

}  // namespace

void SortedInserts::Add(size_t part, SequenceNumber sequence, ValueType type, const Slice& key,
                        const Slice& value) {
  parts_[part].push_back(order_.Ref(PackTag(sequence, type), key, value));
}

void SortedInserts::DropFrom(size_t parts) {
  if (parts < parts_.size()) parts_.resize(parts);
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
            [this](const Update* a, const Update* b) { return order_.IsBefore(*a, *b); });
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
      if (update.prefix == lowest && begin != nullptr && order_.IsBefore(update, *begin)) continue;
      if (update.prefix == highest && end != nullptr && !order_.IsBefore(update, *end)) continue;
      items.push_back({.prefix = update.prefix, .update = &update});
    }
  }
  return items;
}

void SortedInserts::SortAndInsert(MemTable* memtable, const Update* begin, const Update* end,
                                  size_t expected) const {
  Items items = Range(begin, end, expected);
  order_.Sort(&items);
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
