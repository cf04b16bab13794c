#include "db_bench/report/timeline.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstring>
#include <utility>

namespace nacre::bench {

Status Timeline::Begin(std::string_view benchmark, std::vector<const OpRecorder*> recorders) {
  if (config_.report_file.empty()) return Status::OK();
  if (file_ == nullptr) {
    file_.reset(std::fopen(config_.report_file.c_str(), "w"));
    if (file_ == nullptr) {
      return Status::IOError("cannot write " + config_.report_file + ": " + std::strerror(errno));
    }
    std::fputs("secs_elapsed,interval_qps,p50_us,p99_us,max_us,repaired_bytes,benchmark\n",
               file_.get());
    start_nanos_ = clock_->NowNanos();
  }
  benchmark_ = benchmark;
  recorders_ = std::move(recorders);
  ops_ = 0;
  latencies_ = LatencyCounts();
  interval_nanos_ = clock_->NowNanos();
  {
    MutexLock lock(&mutex_);
    finished_ = false;
  }
  thread_ = std::thread([this] { Run(); });
  return Status::OK();
}

void Timeline::End() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    finished_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void Timeline::Run() {
  const auto period = static_cast<uint64_t>(config_.report_interval_seconds * 1e9);
  uint64_t next = interval_nanos_ + period;
  MutexLock lock(&mutex_);
  while (!finished_) {
    const uint64_t before = clock_->NowNanos();
    if (before < next) wake_.WaitFor(std::chrono::nanoseconds(next - before));
    const uint64_t now = clock_->NowNanos();
    if (now < next && !finished_) continue;
    WriteInterval(now);
    next = std::max(next + period, now);
  }
}

void Timeline::WriteInterval(uint64_t now) {
  uint64_t ops = 0;
  LatencyCounts latencies;
  for (const OpRecorder* recorder : recorders_) {
    ops += recorder->done();
    latencies.Merge(recorder->latencies());
  }
  const LatencyCounts interval = latencies.Since(latencies_);
  const double seconds = static_cast<double>(now - interval_nanos_) * 1e-9;
  std::fprintf(file_.get(), "%.3f,%.0f,%.2f,%.2f,%.2f,%" PRIu64 ",%s\n",
               static_cast<double>(now - start_nanos_) * 1e-9,
               seconds > 0 ? static_cast<double>(ops - ops_) / seconds : 0,
               interval.PercentileNanos(50) / 1000, interval.PercentileNanos(99) / 1000,
               interval.PercentileNanos(100) / 1000, engine_->RepairedBytes(), benchmark_.c_str());
  std::fflush(file_.get());
  ops_ = ops;
  latencies_ = std::move(latencies);
  interval_nanos_ = now;
}

}  // namespace nacre::bench
