#include "db_bench/cycle_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <chrono>

namespace nacre::bench {
namespace {

#if defined(__x86_64__)
bool CounterIsConstant() {
  unsigned int eax = 0;
  unsigned int ebx = 0;
  unsigned int ecx = 0;
  unsigned int edx = 0;
  constexpr unsigned int kPowerManagementLeaf = 0x80000007;
  constexpr unsigned int kInvariantTsc = 1U << 8;
  return __get_cpuid(kPowerManagementLeaf, &eax, &ebx, &ecx, &edx) != 0 &&
         (edx & kInvariantTsc) != 0;
}
#endif

}  // namespace

CycleClock::CycleClock(Clock* clock) : clock_(clock) {
#if defined(__x86_64__)
  if (!CounterIsConstant()) return;
  const uint64_t nanos_before = clock->NowNanos();
  const uint64_t ticks_before = __rdtsc();
  clock->SleepFor(std::chrono::milliseconds(10));
  const uint64_t nanos = clock->NowNanos() - nanos_before;
  const uint64_t ticks = __rdtsc() - ticks_before;
  if (nanos == 0 || ticks == 0) return;
  use_counter_ = true;
  nanos_per_tick_ = static_cast<double>(nanos) / static_cast<double>(ticks);
#endif
}

}  // namespace nacre::bench
