#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "util/clock.h"

namespace nacre::bench {

/// Time stamps that cost a few nanoseconds: the processor's counter where it runs at a constant
/// rate, else the monotonic clock.
/// Thread safety: const methods may be called from many threads at once.
class CycleClock {
 public:
  /// Takes 10 ms to compare the counter with `clock`.
  explicit CycleClock(Clock* clock);

  uint64_t Now() const {
#if defined(__x86_64__)
    if (use_counter_) [[likely]]
      return __rdtsc();
#endif
    return clock_->NowNanos();
  }
  /// Nanoseconds of a difference of two `Now()`s.
  uint64_t ToNanos(uint64_t ticks) const {
    return static_cast<uint64_t>(static_cast<double>(ticks) * nanos_per_tick_);
  }
  uint64_t ToTicks(double nanos) const { return static_cast<uint64_t>(nanos / nanos_per_tick_); }

 private:
  Clock* clock_;
  bool use_counter_ = false;
  double nanos_per_tick_ = 1;
};

}  // namespace nacre::bench
