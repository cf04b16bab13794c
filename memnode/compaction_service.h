#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "memnode/compaction_job.h"
#include "memnode/compaction_peers.h"
#include "nacre/comparator.h"
#include "nacre/status.h"
#include "util/mutex.h"

namespace nacre::memnode {

/// A compaction that a node runs for a client.
struct CompactionTask {
  uint64_t client_id = 0;
  uint64_t job_id = 0;
  PeersKey peers;
  const Comparator* comparator = nullptr;
  CompactionJob job;
  /// Set: the task ends soon with `Aborted`. Any thread.
  std::atomic<bool> cancelled{false};

  // Once finished:
  Status status;
  CompactionResult result;
};

struct CompactionCounters {
  std::atomic<uint64_t> done{0};
  std::atomic<uint64_t> failed{0};  ///< Cancelled ones included.
  std::atomic<uint64_t> bytes_read{0};
  std::atomic<uint64_t> bytes_written{0};
  std::atomic<uint64_t> cpu_nanos{0};
};

/// The threads of a node that run compactions.
///
/// Thread safety: all methods may be called from many threads at once, save Stop: once.
class CompactionService {
 public:
  /// `finished` is called on a thread of the service once a task has its status and writes no
  /// more, whether or not it ever ran.
  CompactionService(int workers, rdma::Device* device, const rdma::DeviceOptions& device_options,
                    Clock* clock, LocalMemory local,
                    std::function<void(std::shared_ptr<CompactionTask>)> finished);
  /// Stop must have been called.
  ~CompactionService();

  /// `Busy` when too many tasks wait already, `Unavailable` after Stop.
  Status Submit(std::shared_ptr<CompactionTask> task) EXCLUDES(mutex_);
  /// Cancels all tasks, waits for the running ones, and ends the connections to other nodes.
  void Stop() EXCLUDES(mutex_);

  const CompactionCounters& counters() const { return counters_; }

 private:
  static constexpr size_t kMaxWaiting = 64;

  void Work() EXCLUDES(mutex_);
  void Run(CompactionTask* task);
  Status Execute(CompactionTask* task);

  const std::function<void(std::shared_ptr<CompactionTask>)> finished_;
  CompactionPeersCache peers_;
  CompactionCounters counters_;
  Mutex mutex_;
  CondVar work_{&mutex_};
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::deque<std::shared_ptr<CompactionTask>> waiting_ GUARDED_BY(mutex_);
  std::set<CompactionTask*> running_ GUARDED_BY(mutex_);
  std::vector<std::thread> workers_;
};

}  // namespace nacre::memnode
