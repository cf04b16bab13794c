#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "pool/space/pending_writes.h"
#include "table/format/placement.h"
#include "util/mutex.h"
#include "util/threads/executor.h"

namespace nacre::pool {

/// Keeps space that may still be written to from being used again: by a job that a node runs, or by
/// writes of this client itself that it has given up. A node that does not answer may be stopped
/// for hours, and go on then with the job, or store what waited in its sockets. So a task asks
/// the nodes to end such jobs and connections until they have, or are lost, and only then is the
/// space of a node free. No caller waits for it. There is a task only while there is such space.
///
/// Thread safety: all methods may be called from many threads at once.
class SpaceQuarantine {
 public:
  /// What is asked of the nodes; see pool/space/pending_writes.h.
  struct Nodes {
    std::function<void(std::vector<JobEnd>* jobs)> end_jobs;
    std::function<bool(NodeId node)> may_still_write;  ///< MayStillWriteOn
    std::function<void()> end_abandoned_writes;
  };
  using Free = std::function<void(const ExtentAddr& extent)>;

  /// `executor` outlives this.
  SpaceQuarantine(Executor* executor, Nodes nodes, Free free)
      : executor_(executor), nodes_(std::move(nodes)), free_(std::move(free)) {}
  /// What is held stays reserved: the next owner finds it free, once its nodes have ended what they
  /// did for this owner.
  ~SpaceQuarantine() { Stop(); }

  /// Frees what neither the job nor this client may still write to, at once, and the rest when that
  /// is true of it. `end` of no job: the extents were written by this client alone.
  void Take(const JobEnd& end, const std::vector<ExtentAddr>& extents) EXCLUDES(mutex_);
  /// Ends the task, and frees what is free by now. Idempotent.
  void Stop() EXCLUDES(mutex_);

  /// Whether the node is open in a job that was taken.
  bool AwaitsEndOn(NodeId node) const EXCLUDES(mutex_);
  /// Bytes that wait. Any thread.
  uint64_t held_bytes() const { return held_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Job {
    JobEnd end;
    std::vector<ExtentAddr> held;
  };

  void EndJobs() EXCLUDES(mutex_);
  /// Takes over what `ends`, in the order of jobs_, have come to; what is free now.
  std::vector<ExtentAddr> Release(const std::vector<JobEnd>& ends) REQUIRES(mutex_);

  bool MayBeWritten(const JobEnd& end, NodeId node) const {
    return end.MayWriteOn(node) || nodes_.may_still_write(node);
  }

  Executor* const executor_;
  const Nodes nodes_;
  const Free free_;
  std::atomic<uint64_t> held_bytes_{0};  ///< Bytes of jobs_. Relaxed: a figure by itself.
  mutable Mutex mutex_;
  CondVar changed_{&mutex_};
  std::vector<Job> jobs_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;  ///< The task is there.
};

}  // namespace nacre::pool
