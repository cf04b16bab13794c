#pragma once

#include <cstdint>

namespace nacre {

/// xoshiro256**: fast and good; the same seed gives the same numbers on every machine.
/// Thread safety: none; one per thread.
class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t Next();
  /// Uniform in [0, n); n > 0.
  uint64_t Uniform(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * n) >> 64);
  }
  bool OneIn(uint64_t n) { return Uniform(n) == 0; }
  /// In [0, 1).
  double NextDouble() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  /// Uniform in [0, 2^bits), bits itself uniform in [0, max_bits]: favours small numbers.
  uint64_t Skewed(int max_bits) { return Uniform(uint64_t{1} << Uniform(max_bits + 1)); }

 private:
  uint64_t state_[4];
};

}  // namespace nacre
