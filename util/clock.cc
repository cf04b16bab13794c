#include "util/clock.h"

#include <time.h>

#include <thread>

#include "util/never_destroyed.h"
#include "util/simulation.h"

namespace nacre {
namespace {

class SystemClock final : public Clock {
 public:
  uint64_t NowNanos() override {
    if (Simulation* simulation = Simulation::Current()) [[unlikely]]
      return simulation->NowNanos();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
  }
  uint64_t CoarseNanos() override {
    if (Simulation* simulation = Simulation::Current()) [[unlikely]]
      return simulation->NowNanos();
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE,
                    &now);  // The coarse form of the clock that steady_clock is.
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  }
  void SleepFor(std::chrono::nanoseconds duration) override {
    if (Simulation* simulation = Simulation::Current()) [[unlikely]]
      return simulation->SleepFor(duration);
    std::this_thread::sleep_for(duration);
  }
};

}  // namespace

uint64_t ThreadCpuNanos() {
  // Threads of a simulation take no time but what the simulation says.
  if (Simulation* simulation = Simulation::Current()) return simulation->NowNanos();
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

Clock* Clock::System() {
  static const NeverDestroyed<SystemClock> clock;
  return &*clock;
}

}  // namespace nacre
