#pragma once

#include <cstdint>
#include <cstring>

#include "nacre/comparator.h"
#include "nacre/slice.h"

namespace nacre {

// The orders of user keys that a SkipList is compiled for.
//
// `Prefix` maps a key to a number that never contradicts the order: a < b implies
// Prefix(a) <= Prefix(b). Without one (`kHasPrefix` is false) it is 0.

/// BytewiseComparator(), inlined.
struct BytewiseKeyOrder {
  static constexpr bool kHasPrefix = true;

  /// The first eight bytes as a big-endian number, as if zeros followed the key.
  static uint64_t Prefix(const Slice& key) {
    uint64_t word = 0;
    if (key.size() >= sizeof(word)) [[likely]] {
      std::memcpy(&word, key.data(), sizeof(word));
    } else if (!key.empty()) {
      std::memcpy(&word, key.data(), key.size());
    }
    return __builtin_bswap64(word);
  }

  int Compare(const Slice& a, const Slice& b) const { return a.compare(b); }
};

/// Any other comparator.
struct CustomKeyOrder {
  static constexpr bool kHasPrefix = false;
  static uint64_t Prefix(const Slice&) { return 0; }

  int Compare(const Slice& a, const Slice& b) const { return comparator->Compare(a, b); }

  const Comparator* comparator;
};

}  // namespace nacre
