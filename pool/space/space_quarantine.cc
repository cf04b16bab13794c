#include "pool/space/space_quarantine.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace nacre::pool {
namespace {

using std::chrono::milliseconds;

/// Between two attempts to end what has not ended.
constexpr milliseconds kFirstBackOff{50};
constexpr milliseconds kLastBackOff{2000};

}  // namespace

void SpaceQuarantine::Take(const JobEnd& end, const std::vector<ExtentAddr>& extents) {
  Job job{.end = end, .held = {}};
  for (const ExtentAddr& extent : extents) {
    if (MayBeWritten(end, static_cast<NodeId>(extent.start.node))) {
      job.held.push_back(extent);
    } else {
      free_(extent);
    }
  }
  if (end.ended() && job.held.empty()) return;
  MutexLock lock(&mutex_);
  for (const ExtentAddr& extent : job.held) {
    held_bytes_.fetch_add(extent.length, std::memory_order_relaxed);
  }
  jobs_.push_back(std::move(job));
  if (stopping_) return;
  changed_.SignalAll();
  if (ending_) return;
  executor_->Schedule([this] { EndJobs(); });
  ending_ = true;
}

bool SpaceQuarantine::AwaitsEndOn(NodeId node) const {
  MutexLock lock(&mutex_);
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [node](const Job& job) { return job.end.MayWriteOn(node); });
}

void SpaceQuarantine::Stop() {
  // What others have ended meanwhile is free, though nothing has looked at it again.
  std::vector<ExtentAddr> freed;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
    while (ending_) changed_.Wait();
    std::vector<JobEnd> ends;
    for (const Job& job : jobs_) ends.push_back(job.end);
    freed = Release(ends);
  }
  for (const ExtentAddr& extent : freed) free_(extent);
}

void SpaceQuarantine::EndJobs() {
  milliseconds back_off = kFirstBackOff;
  MutexLock lock(&mutex_);
  while (!stopping_ && !jobs_.empty()) {
    std::vector<JobEnd> ends;
    for (const Job& job : jobs_) ends.push_back(job.end);
    {
      MutexUnlock unlock(&mutex_);
      nodes_.end_jobs(&ends);
      nodes_.end_abandoned_writes();
    }
    const std::vector<ExtentAddr> freed = Release(ends);
    {
      MutexUnlock unlock(&mutex_);
      for (const ExtentAddr& extent : freed) free_(extent);
    }
    if (!freed.empty()) back_off = kFirstBackOff;
    if (!stopping_ && !jobs_.empty()) {
      changed_.WaitFor(back_off);
      back_off = std::min(2 * back_off, kLastBackOff);
    }
  }
  ending_ = false;
  changed_.SignalAll();
}

std::vector<ExtentAddr> SpaceQuarantine::Release(const std::vector<JobEnd>& ends) {
  std::vector<ExtentAddr> freed;
  for (size_t i = 0; i < ends.size(); ++i) {
    Job& job = jobs_[i];  // Those that came meanwhile are behind these.
    job.end = ends[i];
    std::erase_if(job.held, [&](const ExtentAddr& extent) {
      if (MayBeWritten(job.end, static_cast<NodeId>(extent.start.node))) return false;
      freed.push_back(extent);
      held_bytes_.fetch_sub(extent.length, std::memory_order_relaxed);
      return true;
    });
  }
  std::erase_if(jobs_, [](const Job& job) { return job.end.ended() && job.held.empty(); });
  return freed;
}

}  // namespace nacre::pool
