#include "db_bench/report/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "db_bench/report/interval_report.h"

namespace nacre::bench {
namespace {

constexpr std::chrono::milliseconds kLineInterval{200};
constexpr uint64_t kNanosPerSecond = 1'000'000'000;

}  // namespace

Progress::Progress(const BenchConfig& config, Clock* clock, std::string_view name,
                   uint64_t total_ops, std::vector<const OpRecorder*> recorders)
    : terminal_(isatty(STDERR_FILENO) != 0),
      report_nanos_(static_cast<uint64_t>(config.stats_interval_seconds) * kNanosPerSecond),
      duration_seconds_(config.duration_seconds),
      clock_(clock),
      name_(name),
      total_ops_(total_ops),
      recorders_(std::move(recorders)),
      reported_ops_(recorders_.size()) {
  if (terminal_ || report_nanos_ > 0) thread_ = std::thread([this] { Run(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    finished_ = true;
    wake_.Signal();
  }
  thread_.join();
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void Progress::Run() {
  const uint64_t start = clock_->NowNanos();
  uint64_t next_report = report_nanos_;
  MutexLock lock(&mutex_);
  while (!finished_) {
    std::chrono::nanoseconds wait = kLineInterval;
    const uint64_t before = clock_->NowNanos() - start;
    if (report_nanos_ > 0) {
      const std::chrono::nanoseconds to_report(next_report > before ? next_report - before : 0);
      wait = terminal_ ? std::min(wait, to_report) : to_report;
    }
    wake_.WaitFor(wait);
    const uint64_t elapsed = clock_->NowNanos() - start;
    if (finished_) break;
    if (report_nanos_ > 0 && elapsed >= next_report) {
      ReportThreads(elapsed);
      next_report += report_nanos_;
    }
    if (terminal_) ShowLine(elapsed);
  }
}

void Progress::ShowLine(uint64_t elapsed_nanos) const {
  uint64_t done = 0;
  for (const OpRecorder* recorder : recorders_) done += recorder->done();
  const double seconds = static_cast<double>(elapsed_nanos) * 1e-9;
  const double fraction = total_ops_ > 0
                              ? static_cast<double>(done) / static_cast<double>(total_ops_)
                              : seconds / std::max(1, duration_seconds_);
  std::fprintf(stderr, "\r%s: %3.0f %%  %" PRIu64 " ops  %.0f ops/sec\033[K", name_.c_str(),
               100 * std::min(fraction, 1.0), done, static_cast<double>(done) / seconds);
  std::fflush(stderr);
}

void Progress::ReportThreads(uint64_t elapsed_nanos) {
  if (terminal_) std::fputs("\r\033[K", stderr);
  for (size_t i = 0; i < recorders_.size(); ++i) {
    const uint64_t done = recorders_[i]->done();
    PrintInterval({.thread = static_cast<int>(i),
                   .ops = done - reported_ops_[i],
                   .total_ops = done,
                   .nanos = elapsed_nanos - reported_nanos_,
                   .total_nanos = elapsed_nanos});
    reported_ops_[i] = done;
  }
  reported_nanos_ = elapsed_nanos;
}

}  // namespace nacre::bench
