#pragma once

#include <cstdint>
#include <cstring>

#include "nacre/comparator.h"
#include "nacre/slice.h"

namespace nacre {

// The orders of user keys that a SkipList is compiled for.
//
// `Prefix` maps a key to a number that never contradicts the order: a < b implies
// Prefix(a) <= Prefix(b). Without one (`kHasPrefix` is false) it is 0. `CompareSamePrefix` (< 0, 0,
// > 0) is asked only about keys whose prefixes are equal.

/// BytewiseComparator(), inlined.
struct BytewiseKeyOrder {
  static constexpr bool kHasPrefix = true;

  /// The first eight bytes as a big-endian number, as if zeros followed the key.
  static uint64_t Prefix(const Slice& key) {
    if (key.size() >= sizeof(uint64_t)) [[likely]]
      return Word(key.data());
    char padded[sizeof(uint64_t)] = {};
    if (!key.empty()) std::memcpy(padded, key.data(), key.size());
    return Word(padded);
  }

  /// Compares words: most keys are too short for a call of memcmp to pay.
  static int CompareSamePrefix(const Slice& a, const Slice& b) {
    const size_t n = a.size() < b.size() ? a.size() : b.size();
    // Equal prefixes of shorter keys may be padding.
    if (n < sizeof(uint64_t)) return a.compare(b);
    for (size_t at = sizeof(uint64_t); at < n; at += sizeof(uint64_t)) {
      // The last word overlaps the one before it, which is equal.
      const size_t from = at + sizeof(uint64_t) <= n ? at : n - sizeof(uint64_t);
      const uint64_t word_a = Word(a.data() + from);
      const uint64_t word_b = Word(b.data() + from);
      if (word_a != word_b) return word_a < word_b ? -1 : 1;
    }
    return a.size() < b.size() ? -1 : (a.size() > b.size() ? 1 : 0);
  }

 private:
  static uint64_t Word(const char* bytes) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof(word));
    return __builtin_bswap64(word);
  }
};

/// Any other comparator.
struct CustomKeyOrder {
  static constexpr bool kHasPrefix = false;
  static uint64_t Prefix(const Slice&) { return 0; }

  int CompareSamePrefix(const Slice& a, const Slice& b) const { return comparator->Compare(a, b); }

  const Comparator* comparator;
};

}  // namespace nacre
