#pragma once

#include "db_bench/config.h"
#include "nacre/status.h"

namespace nacre::bench {

/// Reads the flags of transactions. Requires the rest of `config`. `InvalidArgument` as
/// `ParseFlags`, which calls it.
Status ParseTransactionFlags(BenchConfig* config);

}  // namespace nacre::bench
