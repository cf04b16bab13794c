#pragma once

#include <cstdint>

namespace nacre::bench {

/// CPU time of all threads in nanoseconds. On a busy machine it is steadier than elapsed time, and
/// it shows what background threads cost.
uint64_t ProcessCpuNanos();

struct ProcessUsage {
  uint64_t threads = 0;
  uint64_t anonymous_bytes = 0;  ///< Resident memory of its own, without that of mapped nodes.
};
/// As of now. Zeros where the system does not tell.
ProcessUsage ReadProcessUsage();

}  // namespace nacre::bench
