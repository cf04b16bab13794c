#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>

#include "util/clock.h"
#include "util/simulation.h"

namespace nacre::pool {

/// Paces a loop that polls for something a node is about to do: spins for a few microseconds, then
/// lets other threads run, then sleeps for longer and longer. There may be fewer cores than
/// threads, and the node may run on one of them. A thread whose last waits were all longer than a
/// spin lets others run at once, and spins only now and then, to see whether that has changed.
///
/// Thread safety: none; a thread that begins a wait ends it.
class SpinWait {
 public:
  explicit SpinWait(Clock* clock) : clock_(clock) {
    // Only threads that sleep let others go on in a simulation.
    if (Simulation::Current() != nullptr) rounds_ = kYields;
  }
  ~SpinWait() {
    if (spinning_) long_waits_ = 0;
  }
  SpinWait(const SpinWait&) = delete;
  SpinWait& operator=(const SpinWait&) = delete;

  void Pause() {
    if (++rounds_ == 1) BeginSpin();
    if (spinning_) {
      CpuRelax();
      if (rounds_ % kSpinsOfALook == 0) EndSpinInTime();
    } else if (rounds_ <= kYields) {
      ::sched_yield();
    } else {
      clock_->SleepFor(sleep_);
      if (sleep_ < kMaxSleep) sleep_ *= 2;
    }
  }
  /// Pausing costs less than looking at the clock: look at it now and then only.
  bool TimeToCheckClock() const { return rounds_ % 64 == 0 || rounds_ > kYields; }

 private:
  static constexpr int kSpinsOfALook = 8;
  static constexpr int kYields = 256;  // And spins before them.
  /// About what it takes to let another thread run and to get the processor back.
  static constexpr uint64_t kSpinNanos = 4'000;
  static constexpr std::chrono::microseconds kMaxSleep{1000};
  static constexpr uint32_t kLongWaits = 4;  // After that many spins are taken to be in vain.
  static constexpr uint32_t kTrial = 32;     // One wait in so many spins all the same.

  void BeginSpin() {
    spinning_ = long_waits_ < kLongWaits || long_waits_ % kTrial == 0;
    if (spinning_) {
      spin_end_nanos_ = clock_->NowNanos() + kSpinNanos;
    } else {
      ++long_waits_;
    }
  }
  void EndSpinInTime() {
    if (clock_->NowNanos() < spin_end_nanos_) return;
    spinning_ = false;
    ++long_waits_;
  }
  static void CpuRelax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
  }

  /// How many of this thread's waits in a row have outlasted a spin, or were taken to.
  static inline thread_local uint32_t long_waits_ = 0;

  Clock* const clock_;
  int rounds_ = 0;
  bool spinning_ = false;
  uint64_t spin_end_nanos_ = 0;
  std::chrono::microseconds sleep_{20};
};

}  // namespace nacre::pool
