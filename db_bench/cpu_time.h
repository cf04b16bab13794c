#pragma once

#include <cstdint>

#include "util/clock.h"

namespace nacre::bench {

/// CPU time of all threads in nanoseconds. On a busy machine it is steadier than elapsed time, and
/// it shows what background threads cost.
uint64_t ProcessCpuNanos();

}  // namespace nacre::bench
