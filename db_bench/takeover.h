#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "db_bench/config.h"
#include "db_bench/engine/engine.h"
#include "nacre/status.h"
#include "util/clock.h"

// What it takes to go on after the owner of a database was killed. One process runs the benchmarks
// tail and awaitkill behind those that fill the database, and is killed; another one, with the same
// --num, --key_size, --value_size and --tail_bytes, runs takeover.

namespace nacre::bench {

/// Microseconds since before the pool was connected to.
struct TakeoverResult {
  /// Time until a value from the log and one from a table were right.
  uint64_t first_get_micros = 0;
  uint64_t first_put_micros = 0;  ///< Time until a Put was acknowledged.
  /// Steps of the opening, as the engine reports them.
  std::vector<std::pair<std::string, uint64_t>> steps;
};

/// Writes --tail_bytes of keys and values in an order of its own, every key once, and says "ready".
/// The database has all keys below --num and nothing that waits to be flushed.
Status WriteTail(const BenchConfig& config, Engine* engine);

/// Waits for the end of the process, or for `stop`.
void AwaitKill(Clock* clock, const std::atomic<bool>& stop);

/// Opens the database and measures. Then compares all records of the tail: `Corruption` if one is
/// missing or wrong.
Status MeasureTakeover(const BenchConfig& config, Engine* engine, Clock* clock,
                       TakeoverResult* result);

}  // namespace nacre::bench
