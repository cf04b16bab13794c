#include "db_bench/report/op_recorder.h"

#include <algorithm>

#include "db_bench/report/interval_report.h"
#include "nacre/perf_context.h"

namespace nacre::bench {

const char* OpTypeName(OpType type) {
  switch (type) {
    case OpType::kRead:
      return "read";
    case OpType::kWrite:
      return "write";
    case OpType::kDelete:
      return "delete";
    case OpType::kSeek:
      return "seek";
    case OpType::kReadModifyWrite:
      return "read-modify-write";
  }
  return "op";
}

OpRecorder::OpRecorder(const Options& options) : options_(options) {}

void OpRecorder::Start() {
  // The countdown never comes back to 0 from there: nothing is timed.
  calls_to_sample_ = options_.sample_period;
  if (options_.stats_interval > 0) next_report_ = options_.stats_interval;
  cpu_nanos_ = ThreadCpuNanos();
  start_nanos_ = options_.clock->NowNanos();
  last_report_nanos_ = start_nanos_;
  sampling_ = options_.sample_period == 1;
  if (options_.count_remote_reads) {
    SetPerfLevel(kEnableCount);
    reads_at_start_ = get_perf_context()->remote_read_count;
  }
  sample_start_ = options_.cycles->Now();
}

void OpRecorder::Stop() {
  finish_nanos_ = options_.clock->NowNanos();
  cpu_nanos_ = ThreadCpuNanos() - cpu_nanos_;
}

void OpRecorder::Sample(OpType type) {
  const uint64_t now = options_.cycles->Now();
  if (sampling_) {
    const uint64_t nanos = options_.cycles->ToNanos(now - sample_start_);
    latencies_.Add(nanos);
    auto& of_type = latencies_by_type_[static_cast<size_t>(type)];
    if (of_type == nullptr) of_type = std::make_unique<LatencyCounts>();
    of_type->Add(nanos);
    if (options_.count_remote_reads) CountRemoteReads(type);
    if (options_.histogram) {
      auto& histogram = histograms_[static_cast<size_t>(type)];
      if (histogram == nullptr) histogram = std::make_unique<Histogram>();
      histogram->Add(nanos / 1000);
    }
  }
  // The end of one operation is the start of the next: with a period of 1 each call lands here,
  // with more every second visit arms and the next call is timed.
  sampling_ = options_.sample_period == 1 || !sampling_;
  calls_to_sample_ = sampling_ ? 1 : options_.sample_period - 1;
  if (options_.count_remote_reads) reads_at_start_ = get_perf_context()->remote_read_count;
  sample_start_ = now;
}

void OpRecorder::CountRemoteReads(OpType type) {
  ReadCounts& counts = remote_reads_[static_cast<size_t>(type)];
  const uint64_t reads = get_perf_context()->remote_read_count - reads_at_start_;
  ++counts[std::min<uint64_t>(reads, counts.size() - 1)];
}

void OpRecorder::ReportInterval(uint64_t done) {
  const uint64_t now = options_.clock->NowNanos();
  PrintInterval({.thread = options_.thread,
                 .ops = done - last_report_done_,
                 .total_ops = done,
                 .nanos = now - last_report_nanos_,
                 .total_nanos = now - start_nanos_});
  last_report_nanos_ = now;
  last_report_done_ = done;
  next_report_ += options_.stats_interval;
  if (next_report_ <= done) next_report_ = done + options_.stats_interval;
}

}  // namespace nacre::bench
