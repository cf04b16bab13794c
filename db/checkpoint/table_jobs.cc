#include "db/checkpoint/table_jobs.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "util/threads/thread.h"

namespace nacre {

Status ChooseRestoreThreads(int* threads) {
  constexpr size_t kDefaultMost = 8;
  if (*threads == 0) {
    *threads = static_cast<int>(std::min(Thread::HardwareConcurrency(), kDefaultMost));
  }
  return TableJobs::Check({.threads = *threads});
}

Status TableJobs::Check(const CheckpointOptions& options) {
  constexpr int kThreadsMax = 64;
  if (options.threads >= 1 && options.threads <= kThreadsMax) return Status::OK();
  return Status::InvalidArgument("threads is " + std::to_string(options.threads) +
                                 ", must be in [1, " + std::to_string(kThreadsMax) + "]");
}

TableJobs::TableJobs(Clock* clock, CheckpointOptions options, uint64_t tables, uint64_t bytes)
    : clock_(clock), options_(std::move(options)) {
  progress_.tables = tables;
  progress_.bytes = bytes;
}

Status TableJobs::Run(const std::function<Status(size_t)>& job) {
  uint64_t tables = 0;
  {
    MutexLock lock(&mutex_);
    tables = progress_.tables;
  }
  const auto threads = std::min<uint64_t>(static_cast<uint64_t>(options_.threads), tables);
  std::vector<Thread> helpers;
  for (uint64_t i = 1; i < threads; ++i) {
    helpers.emplace_back("nacre-copy", [&] { RunThread(job); });
  }
  RunThread(job);
  for (Thread& helper : helpers) helper.Join();
  MutexLock lock(&mutex_);
  return failure_;
}

void TableJobs::RunThread(const std::function<Status(size_t)>& job) {
  for (;;) {
    size_t table = 0;
    {
      MutexLock lock(&mutex_);
      if (!failure_.ok() || next_ == progress_.tables) return;
      table = next_++;
    }
    Status status = job(table);
    MutexLock lock(&mutex_);
    if (!status.ok() && failure_.ok()) failure_ = std::move(status);
  }
}

Status TableJobs::Ended() const {
  return failure_.ok() ? Status::OK() : Status::Aborted("another table has failed");
}

Status TableJobs::Report() {
  NACRE_RETURN_IF_ERROR(Ended());
  if (options_.progress == nullptr || options_.progress(progress_)) return Status::OK();
  failure_ = Status::Aborted("given up as asked for");
  return failure_;
}

Status TableJobs::Copy(uint64_t bytes) {
  constexpr uint64_t kNanosPerSecond = 1'000'000'000;
  constexpr std::chrono::milliseconds kPatience{50};
  uint64_t begin = 0;
  {
    MutexLock lock(&mutex_);
    NACRE_RETURN_IF_ERROR(Ended());
    progress_.bytes_copied += bytes;
    progress_.bytes_done += bytes;
    NACRE_RETURN_IF_ERROR(Report());
    if (options_.bytes_per_second == 0) return Status::OK();
    begin = std::max(paid_until_nanos_, clock_->NowNanos());
    paid_until_nanos_ = begin + static_cast<uint64_t>(static_cast<unsigned __int128>(bytes) *
                                                      kNanosPerSecond / options_.bytes_per_second);
  }
  for (uint64_t now = clock_->NowNanos(); now < begin; now = clock_->NowNanos()) {
    clock_->SleepFor(
        std::min<std::chrono::nanoseconds>(kPatience, std::chrono::nanoseconds(begin - now)));
    MutexLock lock(&mutex_);
    NACRE_RETURN_IF_ERROR(Report());
  }
  return Status::OK();
}

void TableJobs::Undo(uint64_t bytes) {
  MutexLock lock(&mutex_);
  progress_.bytes_copied -= bytes;
  progress_.bytes_done -= bytes;
}

Status TableJobs::Done(uint64_t bytes) {
  MutexLock lock(&mutex_);
  NACRE_RETURN_IF_ERROR(Ended());
  progress_.bytes_done += bytes;
  ++progress_.tables_done;
  return Report();
}

CheckpointProgress TableJobs::progress() const {
  MutexLock lock(&mutex_);
  return progress_;
}

}  // namespace nacre
