#pragma once

#include <cstdint>

namespace nacre::bench {

/// What one thread did since its last report and since its start: --stats_interval and
/// --stats_interval_seconds.
struct Interval {
  int thread = 0;
  uint64_t ops = 0;
  uint64_t total_ops = 0;
  uint64_t nanos = 0;
  uint64_t total_nanos = 0;
};

/// A line of RocksDB's form on standard error:
/// "2026/01/31-12:00:00  ... thread 0: (1000,5000) ops and (3.1,3.0) ops/second in (0.3,1.6)
/// seconds".
void PrintInterval(const Interval& interval);

}  // namespace nacre::bench
