#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "db_bench/config.h"
#include "db_bench/report/op_recorder.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::bench {

/// Shows how far a benchmark is while it runs: a line that is rewritten, if standard error is a
/// terminal, and a report per thread every --stats_interval_seconds. It only reads the counters
/// that the threads keep anyway.
/// Thread safety: none; made and destroyed by the thread that runs the benchmark.
class Progress {
 public:
  /// `total_ops` is 0 if the time decides. The recorders must outlive this.
  Progress(const BenchConfig& config, Clock* clock, std::string_view name, uint64_t total_ops,
           std::vector<const OpRecorder*> recorders);
  /// Wipes the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void Run();
  void ShowLine(uint64_t elapsed_nanos) const;
  void ReportThreads(uint64_t elapsed_nanos);

  const bool terminal_;
  const uint64_t report_nanos_;  ///< 0 for no reports.
  const int duration_seconds_;
  Clock* const clock_;
  const std::string name_;
  const uint64_t total_ops_;
  const std::vector<const OpRecorder*> recorders_;
  std::vector<uint64_t> reported_ops_;
  uint64_t reported_nanos_ = 0;

  Mutex mutex_;
  CondVar wake_{&mutex_};
  bool finished_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre::bench
