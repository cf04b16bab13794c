#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db_bench/benchmark_list.h"
#include "db_bench/engine/engine.h"
#include "db_bench/report/latency.h"
#include "db_bench/report/member_figure.h"
#include "db_bench/report/op_recorder.h"
#include "db_bench/takeover.h"
#include "util/histogram.h"

namespace nacre::bench {

/// What one benchmark measured, over all its threads.
struct BenchmarkResult {
  std::string name;
  ResultNote note = ResultNote::kNone;
  uint64_t ops = 0;
  uint64_t bytes = 0;
  uint64_t lookups = 0;
  uint64_t found = 0;
  uint64_t background_ops = 0;     ///< Operations of the writer beside the readers; not in `ops`.
  double seconds = 0;              ///< Time from the first thread's start to the last one's end.
  double thread_seconds = 0;       ///< Summed over threads.
  double cpu_seconds = 0;          ///< CPU time of the threads that did `ops`.
  double process_cpu_seconds = 0;  ///< CPU time of all threads, those of the engine too.
  LatencyCounts latencies;
  std::array<std::optional<LatencyCounts>, kOpTypes> latencies_by_type;
  std::array<ReadCounts, kOpTypes> remote_reads{};  ///< As OpRecorder counts them.
  bool open_loop = false;  ///< Latencies are counted from when operations were to start.
  LatencyCounts background_latencies;  ///< Latencies of `background_ops`.
  std::array<std::optional<Histogram>, kOpTypes> histograms;
  TrafficCounters traffic;
  /// Engine::DurabilityCounters at its end.
  std::vector<std::pair<std::string, uint64_t>> durability;
  std::optional<TakeoverResult> takeover;
  std::vector<MemberFigure> member_figures;  ///< Those of moves and failover.
  /// What the disk does with the bytes of a checkpoint and nothing around them; 0: not measured.
  double plain_mb_per_second = 0;

  double OpsPerSecond() const { return seconds > 0 ? static_cast<double>(ops) / seconds : 0; }
  double CpuMicrosPerOp() const {
    return ops > 0 ? cpu_seconds * 1e6 / static_cast<double>(ops) : 0;
  }
  double MbPerSecond() const {
    return seconds > 0 ? static_cast<double>(bytes) / 1048576.0 / seconds : 0;
  }
};

}  // namespace nacre::bench
