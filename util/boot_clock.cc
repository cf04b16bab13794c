#include "util/boot_clock.h"

#include <time.h>

#include <atomic>
#include <cstdint>

#include "util/never_destroyed.h"
#include "util/simulation.h"

namespace nacre {
namespace {

uint64_t Read(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

class SystemBootClock final : public Clock {
 public:
  uint64_t NowNanos() override {
    if (Simulation* simulation = Simulation::Current()) [[unlikely]]
      return simulation->NowNanos();
    return Read(CLOCK_BOOTTIME);
  }
  /// There is no coarse clock of that kind, and the precise one costs several times as much: so it
  /// is the coarse one that stands still, and how long the host has slept, which is looked up when
  /// that one has moved on. It does so with each sleep.
  uint64_t CoarseNanos() override {
    if (Simulation* simulation = Simulation::Current()) [[unlikely]]
      return simulation->NowNanos();
    const uint64_t awake = Read(CLOCK_MONOTONIC_COARSE);
    if (awake != looked_up_at_.load(std::memory_order_acquire)) LookUp(awake);
    return awake + slept_.load(std::memory_order_relaxed);
  }
  void SleepFor(std::chrono::nanoseconds duration) override { Clock::System()->SleepFor(duration); }

 private:
  void LookUp(uint64_t awake) {
    // The order matters: a thread that is interrupted in between finds too little, and looks again
    // soon.
    const uint64_t all = Read(CLOCK_BOOTTIME);
    const uint64_t now = Read(CLOCK_MONOTONIC);
    const uint64_t slept = all > now ? all - now : 0;
    uint64_t known = slept_.load(std::memory_order_relaxed);
    while (known < slept &&
           !slept_.compare_exchange_weak(known, slept, std::memory_order_relaxed)) {
    }
    // Release: pairs with the acquire in CoarseNanos.
    looked_up_at_.store(awake, std::memory_order_release);
  }

  std::atomic<uint64_t> looked_up_at_{0};  ///< The coarse clock's time of the last lookup.
  std::atomic<uint64_t> slept_{0};         ///< This only grows, whichever thread looks it up last.
};

}  // namespace

Clock* BootClock() {
  static NeverDestroyed<SystemBootClock> clock;
  return &*clock;
}

}  // namespace nacre
