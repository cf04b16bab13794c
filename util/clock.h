#pragma once

#include <chrono>
#include <cstdint>

namespace nacre {

inline uint64_t Nanos(std::chrono::nanoseconds duration) {
  return static_cast<uint64_t>(duration.count());
}

/// Monotonic time and sleep, passed to whatever needs them so that a simulation can own time.
/// Thread safety: all methods may be called from many threads at once.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Nanoseconds since an arbitrary start; never goes back.
  virtual uint64_t NowNanos() = 0;
  /// The same within a few milliseconds, for less than the cost of reading a counter.
  virtual uint64_t CoarseNanos() { return NowNanos(); }
  virtual void SleepFor(std::chrono::nanoseconds duration) = 0;

  /// The machine's clock, or that of the simulation that runs; lives for ever.
  static Clock* System();
};

/// Processor time of the calling thread.
uint64_t ThreadCpuNanos();

/// A point in time after which a wait gives up.
class Deadline {
 public:
  static Deadline After(Clock* clock, std::chrono::nanoseconds timeout) {
    return Deadline(clock, clock->NowNanos() + static_cast<uint64_t>(timeout.count()));
  }
  bool Expired() const { return clock_->NowNanos() >= nanos_; }
  /// 0 when expired.
  std::chrono::nanoseconds Remaining() const {
    const uint64_t now = clock_->NowNanos();
    return std::chrono::nanoseconds(now >= nanos_ ? 0 : nanos_ - now);
  }
  Clock* clock() const { return clock_; }

 private:
  Deadline(Clock* clock, uint64_t nanos) : clock_(clock), nanos_(nanos) {}
  Clock* clock_;
  uint64_t nanos_;
};

}  // namespace nacre
