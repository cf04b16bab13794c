#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "jobs/job_peers.h"
#include "jobs/node_job.h"
#include "nacre/status.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre::pool {

/// Threads of a node that run jobs, in the order in which they came.
///
/// Thread safety: all methods may be called from many threads at once, save Stop: once.
class NodeJobService {
 public:
  /// `name`: of its threads, at most 15 bytes. `most`: jobs that run or wait, at least `workers`.
  /// `finished` is called on a thread of the service once
  /// a job has its status and writes no more, whether or not it ever ran.
  NodeJobService(const std::string& name, int workers, size_t most, JobPeersCache* peers,
                 JobCounters* counters, std::function<void(std::shared_ptr<NodeJob>)> finished);
  /// Stop must have been called.
  ~NodeJobService();

  /// `Busy` when there are too many jobs already, `Unavailable` after Stop.
  Status Submit(std::shared_ptr<NodeJob> job) EXCLUDES(mutex_);
  /// Has the job end soon. One that still waits ends now: those in front of it may take long.
  void Cancel(const std::shared_ptr<NodeJob>& job) EXCLUDES(mutex_);
  /// Cancels all jobs and waits for the running ones.
  void Stop() EXCLUDES(mutex_);

 private:
  void Work() EXCLUDES(mutex_);
  Status Execute(NodeJob* job);

  const size_t most_;
  const std::function<void(std::shared_ptr<NodeJob>)> finished_;
  JobPeersCache* const peers_;
  JobCounters* const counters_;
  Mutex mutex_;
  CondVar work_{&mutex_};
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::deque<std::shared_ptr<NodeJob>> waiting_ GUARDED_BY(mutex_);
  std::set<NodeJob*> running_ GUARDED_BY(mutex_);
  std::vector<Thread> workers_;
};

}  // namespace nacre::pool
