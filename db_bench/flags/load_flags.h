#pragma once

#include "db_bench/config.h"
#include "nacre/status.h"

namespace nacre::bench {

/// Reads the flags that say which keys and values the benchmarks take, and when. Requires
/// `config->benchmarks`; may set the flags of sizes. `InvalidArgument` as
/// `ParseFlags`, which calls it.
Status ParseLoadFlags(BenchConfig* config);

}  // namespace nacre::bench
