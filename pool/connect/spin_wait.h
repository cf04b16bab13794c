#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>

#include "util/clock.h"
#include "util/simulation.h"

namespace nacre::pool {

/// Paces a loop that polls for something a node is about to do: spins for about two microseconds,
/// then lets other threads run, then sleeps for longer and longer. There may be fewer cores than
/// threads, and the node may run on one of them.
class SpinWait {
 public:
  explicit SpinWait(Clock* clock) : clock_(clock) {}

  void Pause() {
    ++rounds_;
    if (rounds_ <= kSpins) {
      CpuRelax();
    } else if (rounds_ <= kSpins + kYields) {
      ::sched_yield();
    } else {
      clock_->SleepFor(sleep_);
      if (sleep_ < kMaxSleep) sleep_ *= 2;
    }
  }
  /// Pausing costs less than looking at the clock: look at it now and then only.
  bool TimeToCheckClock() const { return rounds_ % 64 == 0 || rounds_ > kSpins + kYields; }

 private:
  static constexpr int kSpins = 64;
  static constexpr int kYields = 192;
  static constexpr std::chrono::microseconds kMaxSleep{1000};

  static void CpuRelax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
  }

  Clock* const clock_;
  // Only threads that sleep let others go on in a simulation.
  int rounds_ = Simulation::Current() == nullptr ? 0 : kSpins + kYields;
  std::chrono::microseconds sleep_{20};
};

}  // namespace nacre::pool
