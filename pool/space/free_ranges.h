#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace nacre::pool {

/// Free ranges of one node's memory: adjacent ones are joined, and the smallest that is large
/// enough is taken (best fit), the lowest of equals.
///
/// Invariant: ranges are disjoint, not empty, and no two touch.
/// Thread safety: none.
class FreeRanges {
 public:
  /// False, and nothing happens, if part of it is free already.
  bool Insert(uint64_t start, uint64_t length);
  /// Takes `length` bytes from the start of the best range; nothing if there is none.
  std::optional<uint64_t> Take(uint64_t length);
  /// Takes exactly [start, start + length); false, and nothing happens, unless all of it is free.
  bool Remove(uint64_t start, uint64_t length);

  bool CanTake(uint64_t length) const { return largest() >= length; }
  uint64_t largest() const { return by_length_.empty() ? 0 : by_length_.rbegin()->first; }
  uint64_t bytes() const { return bytes_; }
  /// Bytes of the ranges of at least `length`. Costs nothing for shorter ones.
  uint64_t BytesInPieces(uint64_t length) const;
  /// Start and length of those of at least `length`, ascending. Costs nothing for shorter ones.
  std::vector<std::pair<uint64_t, uint64_t>> AtLeast(uint64_t length) const;
  /// Start to length, ascending.
  const std::map<uint64_t, uint64_t>& ranges() const { return by_start_; }

 private:
  void Add(uint64_t start, uint64_t length);
  void Drop(std::map<uint64_t, uint64_t>::iterator range);

  std::map<uint64_t, uint64_t> by_start_;
  std::set<std::pair<uint64_t, uint64_t>> by_length_;  ///< (length, start)
  uint64_t bytes_ = 0;
};

}  // namespace nacre::pool
