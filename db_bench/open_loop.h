#pragma once

#include <atomic>
#include <cstdint>

#include "db_bench/config.h"
#include "db_bench/cycle_clock.h"
#include "db_bench/report/op_recorder.h"
#include "util/random.h"

namespace nacre::bench {

/// When the operations of one thread are to start: --target_ops_per_second, at --arrivals.
/// Thread safety: none; one per thread.
class ArrivalTimes {
 public:
  /// Requires a rate.
  ArrivalTimes(const BenchConfig& config, uint64_t seed);

  /// Nanoseconds from the start of the thread to that of the next operation. The `ops` operations
  /// of one call start together; the next call waits for all of them.
  double Next(uint64_t ops);

 private:
  const Arrivals arrivals_;
  const double gap_nanos_;
  Random random_;
  double next_nanos_ = 0;
};

/// Lets one thread start its operations when they are to start, however long those before them
/// take. An operation that has to wait for the one before it starts late, and its latency is
/// counted from when it was to start: so a pause of the engine shows in all operations that fell
/// into it.
///
/// Thread safety: none; one per thread.
class OpenLoop {
 public:
  /// Nothing is owned. `*stop` ends a wait.
  OpenLoop(const BenchConfig& config, uint64_t seed, const CycleClock* cycles, Clock* clock,
           const std::atomic<bool>* stop, OpRecorder* recorder)
      : times_(config, seed), cycles_(cycles), clock_(clock), stop_(stop), recorder_(recorder) {}

  /// Waits for the start of the next call, which does `ops` operations.
  void Await(uint64_t ops);

 private:
  ArrivalTimes times_;
  const CycleClock* const cycles_;
  Clock* const clock_;
  const std::atomic<bool>* const stop_;
  OpRecorder* const recorder_;
  uint64_t start_ = 0;  ///< In ticks; 0 before the first call.
};

}  // namespace nacre::bench
