#include "pool/space/free_ranges.h"

#include <algorithm>
#include <iterator>

namespace nacre::pool {

void FreeRanges::Add(uint64_t start, uint64_t length) {
  by_start_.emplace(start, length);
  by_length_.emplace(length, start);
  bytes_ += length;
}

void FreeRanges::Drop(std::map<uint64_t, uint64_t>::iterator range) {
  by_length_.erase({range->second, range->first});
  bytes_ -= range->second;
  by_start_.erase(range);
}

bool FreeRanges::Insert(uint64_t start, uint64_t length) {
  if (length == 0) return true;
  uint64_t end = start + length;
  const auto next = by_start_.lower_bound(start);
  if (next != by_start_.end() && next->first < end) return false;
  if (next != by_start_.begin()) {
    const auto previous = std::prev(next);
    const uint64_t previous_end = previous->first + previous->second;
    if (previous_end > start) return false;
    if (previous_end == start) {
      start = previous->first;
      Drop(previous);
    }
  }
  if (next != by_start_.end() && next->first == end) {
    end += next->second;
    Drop(next);
  }
  Add(start, end - start);
  return true;
}

std::vector<std::pair<uint64_t, uint64_t>> FreeRanges::AtLeast(uint64_t length) const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (auto it = by_length_.lower_bound({length, 0}); it != by_length_.end(); ++it) {
    ranges.emplace_back(it->second, it->first);
  }
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

uint64_t FreeRanges::BytesInPieces(uint64_t length) const {
  uint64_t bytes = 0;
  for (auto it = by_length_.lower_bound({length, 0}); it != by_length_.end(); ++it) {
    bytes += it->first;
  }
  return bytes;
}

std::optional<uint64_t> FreeRanges::Take(uint64_t length) {
  const auto best = by_length_.lower_bound({length, 0});
  if (best == by_length_.end() || length == 0) return std::nullopt;
  const auto [range_length, start] = *best;
  Drop(by_start_.find(start));
  if (range_length > length) Add(start + length, range_length - length);
  return start;
}

bool FreeRanges::Remove(uint64_t start, uint64_t length) {
  if (length == 0) return true;
  auto range = by_start_.upper_bound(start);
  if (range == by_start_.begin()) return false;
  --range;
  const uint64_t range_start = range->first;
  const uint64_t range_end = range_start + range->second;
  if (range_end < start + length) return false;
  Drop(range);
  if (range_start < start) Add(range_start, start - range_start);
  if (start + length < range_end) Add(start + length, range_end - start - length);
  return true;
}

}  // namespace nacre::pool
