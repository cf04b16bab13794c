#include "db_bench/cpu_time.h"

#include <ctime>

namespace nacre::bench {

uint64_t ProcessCpuNanos() {
  std::timespec time = {};
  // Fails for unknown clocks only.
  static_cast<void>(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time));
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace nacre::bench
