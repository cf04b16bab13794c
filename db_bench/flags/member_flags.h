#pragma once

#include "db_bench/config.h"
#include "nacre/status.h"

namespace nacre::bench {

/// Checks the flags of a keyspace whose shards belong to several processes, and copies them.
/// Requires that --engine, --sharded, --pool and --benchmarks are known.
Status ParseMemberFlags(BenchConfig* config);

}  // namespace nacre::bench
