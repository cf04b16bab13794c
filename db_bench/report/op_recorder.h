#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "db_bench/config.h"
#include "db_bench/cycle_clock.h"
#include "db_bench/report/latency.h"
#include "util/clock.h"
#include "util/histogram.h"

namespace nacre::bench {

enum class OpType : uint8_t { kRead, kWrite, kDelete, kSeek, kReadModifyWrite };
inline constexpr size_t kOpTypes = 5;
/// "read", as in "Microseconds per read:".
const char* OpTypeName(OpType type);

/// Says for each number how many operations read the memory of nodes so many times; the last entry
/// counts those that read it as often or more often.
using ReadCounts = std::array<uint64_t, 9>;

/// Counts and times the operations of one thread in one benchmark.
///
/// An operation is timed from the end of the one before, as in RocksDB's db_bench, so it includes
/// the making of its key. Reading the clock costs as much as a fast operation, hence only one in
/// `sample_period` calls is timed.
///
/// Thread safety: `done()` may be called from any thread; the rest is for the owning one.
class alignas(64) OpRecorder {
 public:
  /// `histogram` also fills the histograms in microseconds. `stats_interval` > 0 reports on
  /// standard error every so many operations. `count_remote_reads` counts in the thread's
  /// PerfContext, whose level it sets. The clocks are not owned.
  struct Options {
    Clock* clock = nullptr;
    const CycleClock* cycles = nullptr;
    uint64_t sample_period = 0;
    bool histogram = false;
    bool count_remote_reads = false;
    uint64_t stats_interval = 0;
    int thread = 0;
  };
  explicit OpRecorder(const Options& options);

  void Start();
  void Stop();

  /// One call of the engine that did `ops` operations has returned.
  void FinishedOps(uint64_t ops, OpType type) {
    const uint64_t done = done_.load(std::memory_order_relaxed) + ops;
    done_.store(done, std::memory_order_relaxed);
    if (--calls_to_sample_ == 0) [[unlikely]]
      Sample(type);
    if (done >= next_report_) [[unlikely]]
      ReportInterval(done);
  }
  /// The next operation was to start at this time of the cycle clock, and is timed from there.
  /// Requires a `sample_period` of 1.
  void StartAt(uint64_t ticks) { sample_start_ = ticks; }
  void AddBytes(uint64_t bytes) { bytes_ += bytes; }
  void AddLookups(uint64_t lookups, uint64_t found) {
    lookups_ += lookups;
    found_ += found;
  }

  uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  uint64_t start_nanos() const { return start_nanos_; }
  uint64_t finish_nanos() const { return finish_nanos_; }
  /// CPU time of this thread, from Start to Stop.
  uint64_t cpu_nanos() const { return cpu_nanos_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t lookups() const { return lookups_; }
  uint64_t found() const { return found_; }
  const LatencyCounts& latencies() const { return latencies_; }
  /// Null if none of this type were timed.
  const LatencyCounts* latencies(OpType type) const {
    return latencies_by_type_[static_cast<size_t>(type)].get();
  }
  /// Counts of the operations of this type that were timed; all 0 if they were not to be counted.
  const ReadCounts& remote_reads(OpType type) const {
    return remote_reads_[static_cast<size_t>(type)];
  }
  /// Null if there were no operations of this type, or no histograms were asked for.
  const Histogram* histogram(OpType type) const {
    return histograms_[static_cast<size_t>(type)].get();
  }

 private:
  void Sample(OpType type);
  void CountRemoteReads(OpType type);
  void ReportInterval(uint64_t done);

  const Options options_;
  // Written by one thread, read by the progress report: a plain store, no read-modify-write.
  std::atomic<uint64_t> done_{0};
  uint64_t calls_to_sample_ = 0;
  bool sampling_ = false;
  uint64_t sample_start_ = 0;
  uint64_t reads_at_start_ = 0;  ///< The thread's remote reads when the sample began.
  uint64_t next_report_ = UINT64_MAX;
  uint64_t bytes_ = 0;
  uint64_t lookups_ = 0;
  uint64_t found_ = 0;
  uint64_t start_nanos_ = 0;
  uint64_t finish_nanos_ = 0;
  uint64_t cpu_nanos_ = 0;
  uint64_t last_report_nanos_ = 0;
  uint64_t last_report_done_ = 0;
  LatencyCounts latencies_;
  std::array<std::unique_ptr<LatencyCounts>, kOpTypes> latencies_by_type_;
  std::array<ReadCounts, kOpTypes> remote_reads_{};
  std::array<std::unique_ptr<Histogram>, kOpTypes> histograms_;
};

}  // namespace nacre::bench
