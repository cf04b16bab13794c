#include "memnode/node_job_service.h"

#include <fmt/format.h>

#include <cassert>
#include <chrono>
#include <map>
#include <utility>

#include "util/named_point.h"

namespace nacre::memnode {
namespace {

/// Announces the writes of one job to the nodes that will receive them, and withdraws that at the
/// end: no writes are outstanding then, as every writer is finished or gone.
class WriteTickets {
 public:
  WriteTickets(PoolClient* client, uint64_t ticket) : client_(client), ticket_(ticket) {}
  ~WriteTickets() {
    for (const NodeId node : nodes_) {
      // A dead node keeps no tickets; one that is slow, or back after its connections broke, would
      // keep the owner from closing.
      for (int attempt = 0; attempt < kAttempts; ++attempt) {
        const Status s = client_->EndWrites(node, ticket_);
        if (!s.IsTimedOut() && !s.IsUnavailable()) break;
        if (s.IsUnavailable()) client_->clock()->SleepFor(kPause);
      }
    }
  }
  WriteTickets(const WriteTickets&) = delete;
  WriteTickets& operator=(const WriteTickets&) = delete;

  Status Take(const NodeJob& job) {
    std::map<NodeId, std::vector<ExtentAddr>> extents;
    for (const ExtentAddr& extent : job.Extents()) {
      if (extent.start.node != job.peers().self) extents[extent.start.node].push_back(extent);
    }
    for (const auto& [node, of_node] : extents) {
      nodes_.push_back(node);  // Also if it fails: the node may have heard of it.
      NACRE_RETURN_IF_ERROR(
          client_->BeginWrites(node, job.database_id(), job.owner_epoch(), ticket_, of_node));
    }
    return Status::OK();
  }

 private:
  static constexpr int kAttempts = 3;
  static constexpr std::chrono::milliseconds kPause{150};

  PoolClient* const client_;
  const uint64_t ticket_;
  std::vector<NodeId> nodes_;
};

}  // namespace

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
  // One that was cancelled before it ran need not connect to anybody.
  if (job->cancelled()->load(std::memory_order_acquire)) return Status::Aborted("cancelled");
  std::shared_ptr<JobPeers> peers;
  NACRE_RETURN_IF_ERROR(peers_->Get(job->peers(), &peers));
  WriteTickets tickets(peers->client.get(), job->job_id());
  NACRE_RETURN_IF_ERROR(tickets.Take(*job));
  return job->Run(peers.get());
}

}  // namespace nacre::memnode
