#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "nacre/checkpoint.h"
#include "nacre/status.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

/// Puts the default in the place of 0 in `RestoreOptions::threads`, or the like; `InvalidArgument`
/// if it is absurd.
Status ChooseRestoreThreads(int* threads);

/// Work on the tables of a checkpoint, by several threads: at one pace together, with progress, and
/// with an end for all at the first failure.
///
/// Thread safety: Run by one thread; the rest by the jobs.
class TableJobs {
 public:
  /// `InvalidArgument` for absurd options.
  static Status Check(const CheckpointOptions& options);
  TableJobs(Clock* clock, CheckpointOptions options, uint64_t tables, uint64_t bytes);

  /// Calls job(0) to job(tables - 1), each once, and returns when all have ended: the first failure
  /// in time, and then not all of them were called.
  Status Run(const std::function<Status(size_t)>& job) EXCLUDES(mutex_);

  /// Must be called before each piece of a table: waits as long as the pace asks for. `Aborted`
  /// when the work is to end.
  Status Copy(uint64_t bytes) EXCLUDES(mutex_);
  /// What was copied of a table does not count: it is begun anew.
  void Undo(uint64_t bytes) EXCLUDES(mutex_);
  /// A table is there; `bytes` of it were not copied now.
  Status Done(uint64_t bytes) EXCLUDES(mutex_);

  CheckpointProgress progress() const EXCLUDES(mutex_);

 private:
  void RunThread(const std::function<Status(size_t)>& job) EXCLUDES(mutex_);
  Status Ended() const REQUIRES(mutex_);
  Status Report() REQUIRES(mutex_);

  Clock* const clock_;
  const CheckpointOptions options_;
  mutable Mutex mutex_;
  size_t next_ GUARDED_BY(mutex_) = 0;
  uint64_t paid_until_nanos_ GUARDED_BY(mutex_) = 0;
  CheckpointProgress progress_ GUARDED_BY(mutex_);
  Status failure_ GUARDED_BY(mutex_);
};

}  // namespace nacre
