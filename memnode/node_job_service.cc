#include "memnode/node_job_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "util/named_point.h"

namespace nacre::pool {

NodeJobService::NodeJobService(const std::string& name, int workers, size_t most,
                               JobPeersCache* peers, JobCounters* counters,
                               std::function<void(std::shared_ptr<NodeJob>)> finished)
    : most_(most), finished_(std::move(finished)), peers_(peers), counters_(counters) {
  for (int i = 0; i < workers; ++i) {
    workers_.emplace_back(name, [this] { Work(); });
  }
}

NodeJobService::~NodeJobService() { assert(workers_.empty()); }

Status NodeJobService::Submit(std::shared_ptr<NodeJob> job) {
  MutexLock lock(&mutex_);
  if (stopping_) return Status::Unavailable("the node is stopping");
  if (waiting_.size() + running_.size() >= most_) {
    return Status::Busy(
        fmt::format("{} jobs run already, {} wait", running_.size(), waiting_.size()));
  }
  waiting_.push_back(std::move(job));
  work_.Signal();
  return Status::OK();
}

void NodeJobService::Cancel(const std::shared_ptr<NodeJob>& job) {
  job->Cancel();
  {
    MutexLock lock(&mutex_);
    const auto waiting = std::ranges::find(waiting_, job);
    if (waiting == waiting_.end()) return;
    waiting_.erase(waiting);
  }
  job->status = Status::Aborted("cancelled");
  finished_(job);
}

void NodeJobService::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (const auto& job : waiting_) job->Cancel();
    for (NodeJob* job : running_) job->Cancel();
    work_.SignalAll();
  }
  for (Thread& worker : workers_) worker.Join();
  workers_.clear();
}

void NodeJobService::Work() {
  while (true) {
    std::shared_ptr<NodeJob> job;
    {
      MutexLock lock(&mutex_);
      while (waiting_.empty() && !stopping_) work_.Wait();
      if (waiting_.empty()) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
      running_.insert(job.get());
    }
    NACRE_POINT("node.job-begun");
    job->status = Execute(job.get());
    NACRE_POINT("node.job-done");
    job->Count(counters_);
    {
      MutexLock lock(&mutex_);
      running_.erase(job.get());
    }
    finished_(std::move(job));
  }
}

Status NodeJobService::Execute(NodeJob* job) {
  // One that was cancelled before it ran need not connect to any peer.
  if (job->cancelled()->load(std::memory_order_acquire)) return Status::Aborted("cancelled");
  std::shared_ptr<JobPeers> peers;
  if (Status s = peers_->Get(job->peers(), &peers); !s.ok()) {
    // What keeps this node from the others need not keep another one.
    return Status::Unavailable(fmt::format("cannot reach the pool's nodes: {}", s.ToString()));
  }
  return job->Run(peers.get());
}

}  // namespace nacre::pool
