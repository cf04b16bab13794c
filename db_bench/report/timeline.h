#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "db_bench/config.h"
#include "db_bench/engine/engine.h"
#include "db_bench/report/latency.h"
#include "db_bench/report/op_recorder.h"
#include "nacre/status.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::bench {

/// Writes --report_file: a line of CSV for each interval of each benchmark, with what all its
/// threads did in it. The first two columns are those of RocksDB's file of that name:
///
///     secs_elapsed,interval_qps,p50_us,p99_us,max_us,repaired_bytes,benchmark
///
/// Seconds go from the start of the first benchmark. Percentiles are of the operations that were
/// timed and that ended in the interval; 0 if there are none. With --latency_sample_period=1
/// `max_us` is the longest of all. `repaired_bytes` is what the engine has repaired since it was
/// opened. Thread safety: none; made and used by the thread that runs the benchmarks.
class Timeline {
 public:
  /// All three outlive it. The engine is open between Begin and End.
  Timeline(const BenchConfig& config, const Engine* engine, Clock* clock)
      : config_(config), engine_(engine), clock_(clock) {}
  ~Timeline() { End(); }
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// A benchmark starts. Nothing without --report_file. `IOError` if the file cannot be made. The
  /// recorders outlive End.
  Status Begin(std::string_view benchmark, std::vector<const OpRecorder*> recorders);
  /// Writes the rest of an interval, too.
  void End();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void Run() EXCLUDES(mutex_);
  void WriteInterval(uint64_t now);

  const BenchConfig& config_;
  const Engine* const engine_;
  Clock* const clock_;
  std::unique_ptr<std::FILE, Closer> file_;
  uint64_t start_nanos_ = 0;
  std::string benchmark_;
  std::vector<const OpRecorder*> recorders_;
  uint64_t interval_nanos_ = 0;  ///< When the current interval began.
  uint64_t ops_ = 0;             ///< Up to then.
  LatencyCounts latencies_;      ///< Likewise.

  Mutex mutex_;
  CondVar wake_{&mutex_};
  bool finished_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre::bench
