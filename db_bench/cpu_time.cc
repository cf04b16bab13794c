#include "db_bench/cpu_time.h"

#include <ctime>

namespace nacre::bench {
namespace {

uint64_t ReadClock(clockid_t clock) {
  std::timespec time = {};
  // Fails for unknown clocks only.
  static_cast<void>(clock_gettime(clock, &time));
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

uint64_t ThreadCpuNanos() { return ReadClock(CLOCK_THREAD_CPUTIME_ID); }

uint64_t ProcessCpuNanos() { return ReadClock(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace nacre::bench
