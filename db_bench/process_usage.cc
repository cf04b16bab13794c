#include "db_bench/process_usage.h"

#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

namespace nacre::bench {

uint64_t ProcessCpuNanos() {
  std::timespec time = {};
  // Fails for unknown clocks only.
  static_cast<void>(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time));
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t number = 0;
    if (!(words >> name >> number)) continue;
    if (name == "Threads:") usage.threads = number;
    if (name == "RssAnon:") usage.anonymous_bytes = number * 1024;
  }
  return usage;
}

}  // namespace nacre::bench
