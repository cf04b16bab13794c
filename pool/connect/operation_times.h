#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace nacre::pool {

/// How long the operations of one kind took lately on one node: a histogram whose steps are a
/// quarter of a power of two, from a microsecond to a minute. Counts are halved as they age, so
/// that the last few seconds say most.
///
/// Thread safety: all methods may be called from many threads at once. Counts are relaxed: what is
/// asked of them is a statistic.
class OperationTimes {
 public:
  void Add(std::chrono::nanoseconds took) {
    counts_[StepOf(took)].fetch_add(1, std::memory_order_relaxed);
  }
  /// Operations that are counted.
  uint64_t count() const;
  /// The time within which `share` (0 to 1) of them ended, at most a quarter or a microsecond too
  /// long; 0 if none is counted.
  std::chrono::nanoseconds Within(double share) const;
  /// Halves all counts.
  void Age();

 private:
  static constexpr int kStepBits = 2;  ///< Steps of a power of two, as bits.
  static constexpr size_t kSteps = 26 << kStepBits;

  static size_t StepOf(std::chrono::nanoseconds took);
  static std::chrono::nanoseconds EndOf(size_t step);

  std::array<std::atomic<uint32_t>, kSteps> counts_{};
};

inline size_t OperationTimes::StepOf(std::chrono::nanoseconds took) {
  // Below four microseconds a step is a microsecond.
  const uint64_t micros = took.count() <= 0 ? 0 : static_cast<uint64_t>(took.count()) / 1000;
  if (micros < (uint64_t{1} << kStepBits)) return micros;
  const auto power = static_cast<size_t>(std::bit_width(micros)) - 1;
  const size_t within = (micros >> (power - kStepBits)) & ((size_t{1} << kStepBits) - 1);
  const size_t step = ((power - kStepBits + 1) << kStepBits) + within;
  return step < kSteps ? step : kSteps - 1;
}

}  // namespace nacre::pool
