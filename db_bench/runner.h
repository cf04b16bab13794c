#pragma once

#include <atomic>
#include <vector>

#include "db_bench/benchmark_list.h"
#include "db_bench/config.h"
#include "db_bench/cycle_clock.h"
#include "db_bench/engine/engine.h"
#include "db_bench/keys/key_chooser.h"
#include "db_bench/process_kill.h"
#include "db_bench/report/result.h"
#include "db_bench/report/timeline.h"
#include "db_bench/value_generator.h"
#include "db_bench/ycsb/ycsb_keys.h"
#include "nacre/status.h"
#include "util/clock.h"

namespace nacre::bench {

/// Runs the benchmarks of a config one after another and prints the line of each as it ends.
/// Thread safety: none; it makes the threads of the benchmarks itself.
class Runner {
 public:
  /// Nothing is owned. `*stop` may be set at any time to end the run early.
  Runner(const BenchConfig& config, Engine* engine, Clock* clock, std::atomic<bool>* stop);

  /// `Aborted` if it was stopped; else the first failure, with the benchmark's name.
  Status Run();

  const std::vector<BenchmarkResult>& results() const { return results_; }

 private:
  Status RunOne(const BenchmarkSpec& spec);
  /// Makes sure that the database is open, and new if the benchmark wants that. `*skip` is set if
  /// it cannot be had.
  Status Prepare(const BenchmarkSpec& spec, bool* skip);
  Status RunThreads(const BenchmarkSpec& spec, BenchmarkResult* result);
  /// Opens the database itself.
  Status RunTakeover();
  Status RunMembers(const BenchmarkSpec& spec, BenchmarkResult* result);
  Status RunMeta(const BenchmarkSpec& spec, BenchmarkResult* result);

  const BenchConfig& config_;
  Engine* const engine_;
  Clock* const clock_;
  std::atomic<bool>* const stop_;
  const CycleClock cycles_;
  const ValuePool values_;
  Timeline timeline_;
  ProcessKill kill_;
  const KeyChooser key_chooser_;
  YcsbRecords ycsb_records_;
  bool open_ = false;
  /// Counts over the whole run, so that each thread's seed differs.
  uint64_t threads_started_ = 0;
  std::vector<BenchmarkResult> results_;
};

}  // namespace nacre::bench
