#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "nacre/options.h"

namespace nacre {

/// Bytes per second, where `delayed_write_rate` is 0.
inline constexpr uint64_t kDefaultDelayedRate = 16 << 20;

/// Those options of a database that SetDBOptions may change while it is open. A reader of several
/// may see some before a change and some after it.
///
/// Thread safety: all methods may be called from many threads at once.
struct LiveOptions {
  explicit LiveOptions(const DBOptions& options) { Take(options); }

  void Take(const DBOptions& options) {
    delayed_write_rate = options.delayed_write_rate;
    max_background_jobs = options.max_background_jobs;
    max_subcompactions = options.max_subcompactions;
    repair_bytes_per_second = options.repair_bytes_per_second;
    near_data_flush = options.near_data_flush;
    compaction = options.compaction;
    allow_degraded_writes = options.allow_degraded_writes;
    slow_operation_threshold = options.slow_operation_threshold;
  }
  void PutInto(DBOptions* options) const {
    options->delayed_write_rate = delayed_write_rate;
    options->max_background_jobs = max_background_jobs;
    options->max_subcompactions = max_subcompactions;
    options->repair_bytes_per_second = repair_bytes_per_second;
    options->near_data_flush = near_data_flush;
    options->compaction = compaction;
    options->allow_degraded_writes = allow_degraded_writes;
    options->slow_operation_threshold = slow_operation_threshold;
  }

  /// How many run at once: one of the jobs is a flush.
  int most_compactions() const { return std::max(1, max_background_jobs.load() - 1); }

  std::atomic<uint64_t> delayed_write_rate;
  std::atomic<int> max_background_jobs;
  std::atomic<uint32_t> max_subcompactions;
  std::atomic<uint64_t> repair_bytes_per_second;
  std::atomic<NearDataFlush> near_data_flush;
  std::atomic<CompactionSite> compaction;
  std::atomic<bool> allow_degraded_writes;
  std::atomic<std::chrono::microseconds> slow_operation_threshold;
};

}  // namespace nacre
