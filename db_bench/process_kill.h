#pragma once

#include <cstdint>
#include <thread>

#include "db_bench/config.h"
#include "nacre/status.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::bench {

/// Kills the process --kill_pid, a memory node, while a benchmark runs for --duration
/// (--kill_at_seconds) or between two of them (the benchmark `kill`). Once.
/// Thread safety: none; made and used by the thread that runs the benchmarks.
class ProcessKill {
 public:
  ProcessKill(const BenchConfig& config, Clock* clock) : config_(config), clock_(clock) {}
  ~ProcessKill() { Disarm(); }
  ProcessKill(const ProcessKill&) = delete;
  ProcessKill& operator=(const ProcessKill&) = delete;

  /// As kill -9. `InvalidArgument` without --kill_pid, `IOError` if it cannot be.
  Status KillNow();
  /// Must be called when such a benchmark starts: kills --kill_at_seconds from now, if that is
  /// asked for and still to do.
  void Arm();
  /// The benchmark has ended.
  void Disarm();

 private:
  const BenchConfig& config_;
  Clock* const clock_;
  bool done_ = false;  ///< Written by the armed thread, while there is one.
  Mutex mutex_;
  CondVar wake_{&mutex_};
  bool cancelled_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre::bench
