#pragma once

#include <atomic>
#include <cstdint>

#include "db_bench/config.h"
#include "db_bench/engine/engine.h"
#include "db_bench/keys/key_chooser.h"
#include "db_bench/report/result.h"
#include "db_bench/value_generator.h"
#include "nacre/status.h"
#include "util/clock.h"

// What users of a keyspace feel when its shards go from one member to another, as that is asked
// for, or as a member has died. The keyspace is open, with --coordinator.

namespace nacre::bench {

/// What both need. Nothing is owned.
struct MemberBench {
  const BenchConfig& config;
  Engine* engine;
  Clock* clock;
  const std::atomic<bool>* stop;
  const ValuePool* values;
  const KeyChooser* keys;
  uint64_t seed;  ///< The first thread's; the others' follow.
};

/// While --threads threads read and write keys of all shards, gives --moves times a shard to the
/// next member, one shard after the other. Figures: the longest operation of all that were under
/// way during a move, whether they had to do with the shard or not, and the time of each move.
Status MeasureMoves(const MemberBench& bench, BenchmarkResult* result);

/// The same with splits of the first shard in its middle, each second time with a merge of what
/// came of that, instead of moves.
Status MeasureSplits(const MemberBench& bench, BenchmarkResult* result);

/// Kills a member. Figures: the time from before that to the first Get of each of its shards that
/// was answered. Then another member takes its place.
Status MeasureFailover(const MemberBench& bench, BenchmarkResult* result);

}  // namespace nacre::bench
