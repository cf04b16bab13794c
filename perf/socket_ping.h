#pragma once

#include <cstddef>

#include "nacre/status.h"
#include "perf/workload.h"

namespace nacre::perf {

/// The yardstick for `tcp`: a ping-pong over a plain blocking TCP socket of the loopback device
/// between this process and a child, with nothing besides: 32 bytes go there, `size` come back.
/// Single-threaded callers only: it forks.
Status RunSocketPing(size_t size, double seconds, Clock* clock, Result* result);

}  // namespace nacre::perf
