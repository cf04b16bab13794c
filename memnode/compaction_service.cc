#include "memnode/compaction_service.h"

#include <fmt/format.h>
#include <pthread.h>

#include <cassert>
#include <chrono>
#include <map>
#include <utility>

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

  Status Take(const CompactionJob& job, NodeId self) {
    std::map<NodeId, std::vector<ExtentAddr>> extents;
    for (const ReservedTable& output : job.outputs) {
      for (const ExtentAddr& fragment : output.placement.fragments) {
        if (fragment.start.node != self) extents[fragment.start.node].push_back(fragment);
      }
    }
    for (const auto& [node, of_node] : extents) {
      nodes_.push_back(node);  // Also if it fails: the node may have heard of it.
      NACRE_RETURN_IF_ERROR(client_->BeginWrites(node, job.database_id, ticket_, of_node));
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

CompactionService::CompactionService(int workers, rdma::Device* device,
                                     const rdma::DeviceOptions& device_options, Clock* clock,
                                     LocalMemory local,
                                     std::function<void(std::shared_ptr<CompactionTask>)> finished)
    : finished_(std::move(finished)), peers_(device, device_options, clock, local) {
  for (int i = 0; i < workers; ++i) {
    workers_.emplace_back([this] {
      ::pthread_setname_np(::pthread_self(), "nacre-compact");
      Work();
    });
  }
}

CompactionService::~CompactionService() { assert(workers_.empty()); }

Status CompactionService::Submit(std::shared_ptr<CompactionTask> task) {
  MutexLock lock(&mutex_);
  if (stopping_) return Status::Unavailable("the node is stopping");
  if (waiting_.size() >= kMaxWaiting) {
    return Status::Busy(fmt::format("{} compactions wait already", waiting_.size()));
  }
  waiting_.push_back(std::move(task));
  work_.Signal();
  return Status::OK();
}

void CompactionService::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (const auto& task : waiting_) task->cancelled.store(true, std::memory_order_release);
    for (CompactionTask* task : running_) task->cancelled.store(true, std::memory_order_release);
    work_.SignalAll();
  }
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  peers_.Clear();
}

void CompactionService::Work() {
  while (true) {
    std::shared_ptr<CompactionTask> task;
    {
      MutexLock lock(&mutex_);
      while (waiting_.empty() && !stopping_) work_.Wait();
      if (waiting_.empty()) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
      running_.insert(task.get());
    }
    Run(task.get());
    {
      MutexLock lock(&mutex_);
      running_.erase(task.get());
    }
    finished_(std::move(task));
  }
}

void CompactionService::Run(CompactionTask* task) {
  task->status = Execute(task);
  if (!task->status.ok()) {
    task->result = CompactionResult();
    counters_.failed.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const CompactionResult& result = task->result;
  counters_.done.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes_read.fetch_add(result.stats.bytes_read, std::memory_order_relaxed);
  counters_.bytes_written.fetch_add(result.stats.bytes_written, std::memory_order_relaxed);
  counters_.cpu_nanos.fetch_add(result.cpu_nanos, std::memory_order_relaxed);
}

Status CompactionService::Execute(CompactionTask* task) {
  // One that was cancelled before it ran need not connect to anybody.
  if (task->cancelled.load(std::memory_order_acquire)) return Status::Aborted("cancelled");
  std::shared_ptr<CompactionPeers> peers;
  NACRE_RETURN_IF_ERROR(peers_.Get(task->peers, &peers));
  WriteTickets tickets(peers->client.get(), task->job_id);
  NACRE_RETURN_IF_ERROR(tickets.Take(task->job, task->peers.self));
  return RunCompaction(task->job, task->comparator, peers->store.get(), &task->cancelled,
                       &task->result);
}

}  // namespace nacre::memnode
