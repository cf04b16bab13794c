#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace nacre {

/// Learns how far scans of one table go on behind the interval that they begin in, from those that
/// have ended, so that the next one can fetch as much with its first read. It is a hint: a scan
/// that goes on reads more.
///
/// Thread safety: all methods may be called from many threads at once; of two notes that meet, one
/// may be lost.
class ScanLength {
 public:
  /// Longer scans count as so many bytes.
  static constexpr uint64_t kLongest = 256 << 10;

  /// Bytes that are enough for most scans if they are like those before; 0 before the first one.
  uint64_t Expected() const {
    const uint64_t packed = state_.load(std::memory_order_relaxed);
    return MeanOf(packed) + 2 * DeviationOf(packed);
  }
  /// A scan has ended that used `bytes`.
  void Note(uint64_t bytes) {
    const uint64_t length = std::min(bytes, kLongest);
    const uint64_t packed = state_.load(std::memory_order_relaxed);
    uint64_t mean = MeanOf(packed);
    uint64_t deviation = DeviationOf(packed);
    if (packed == 0) {
      mean = length;
      deviation = length / 8;
    } else {
      deviation = (3 * deviation + std::max(length, mean) - std::min(length, mean)) / 4;
      mean = (7 * mean + length) / 8;
    }
    state_.store(kNoted | mean << 32 | deviation, std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kNoted = uint64_t{1} << 63;
  static uint64_t MeanOf(uint64_t packed) { return (packed & ~kNoted) >> 32; }
  static uint64_t DeviationOf(uint64_t packed) { return packed & UINT32_MAX; }

  std::atomic<uint64_t> state_{0};  ///< Nothing is ordered by it, so it is relaxed.
};

}  // namespace nacre
