#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "db/wal/log_segments.h"
#include "db/wal/log_space.h"
#include "nacre/logger.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/store/mirrored_extent.h"
#include "util/mutex.h"
#include "util/threads/periodic_task.h"

namespace nacre {

/// A segment that is reserved, recorded and connected to, with nothing written.
struct PreparedSegment {
  LogSegment segment;
  std::unique_ptr<pool::MirroredExtent> extent;
};

/// Keeps the next segment of a log ready ahead of need, by a task, so that writers do not wait for
/// space, for the manifest, or for connections. One that has a replica on a node that was lost
/// meanwhile is replaced.
///
/// Thread safety: all methods may be called from many threads at once.
class LogSupply {
 public:
  /// Numbers go up from `first_number`. The first segment is of `first_bytes`, and each is twice as
  /// large as the one before up to `bytes`: a log to which little is written takes little space.
  /// `client` and `space` outlive this.
  LogSupply(pool::PoolClient* client, LogSpace* space, uint64_t first_number, uint64_t first_bytes,
            uint64_t bytes, Logger* log);
  ~LogSupply();

  /// The next segment, of `bytes` at least. Waits until there is one, or until one attempt has
  /// failed: what NewSegment said, or `Unavailable` naming nodes that cannot be reached.
  Status Take(uint64_t bytes, PreparedSegment* prepared) EXCLUDES(mutex_);
  /// Connections of a segment that was used up, for the next one; null: there are none.
  void GiveLane(std::unique_ptr<pool::Lane> lane) EXCLUDES(mutex_);
  /// Segments that were recorded and will never be written: the caller's now.
  std::vector<LogSegment> TakeUnused() EXCLUDES(mutex_);
  /// There are so many of these that a spare is not replaced any more until it is taken: nodes that
  /// are slow by turns would have a log without writes take more and more space.
  bool HasManyUnused() EXCLUDES(mutex_);
  /// Has another spare made if a replica of this one is on a node for which `leave` answers true.
  /// Returns whether a segment that is unused has a replica there.
  bool LeaveNodes(const std::function<bool(NodeId)>& leave) EXCLUDES(mutex_);
  /// The next segment is of `bytes` (at most those of the others), and those behind it are twice as
  /// large each, as at first. Returns when there is one, or one attempt has failed.
  void StartOver(uint64_t bytes) EXCLUDES(mutex_);
  /// Prepares nothing any more; the spare is unused. Waits for a call of the space that is under
  /// way.
  void Stop() EXCLUDES(mutex_);

 private:
  static constexpr size_t kUnusedMax = 3;

  void Look() EXCLUDES(mutex_);
  /// One more segment of `bytes`.
  Status Prepare(uint64_t bytes, PreparedSegment* prepared) EXCLUDES(mutex_);
  bool ManyUnused() const REQUIRES(mutex_) { return unused_.size() >= kUnusedMax; }
  bool Usable(const PreparedSegment& prepared) const;
  void DropSpare() REQUIRES(mutex_);

  pool::PoolClient* const client_;
  LogSpace* const space_;
  const uint64_t most_bytes_;
  Logger* const log_;
  uint64_t next_number_;  ///< Used by the task only.

  Mutex mutex_;
  CondVar changed_{&mutex_};
  PreparedSegment spare_ GUARDED_BY(mutex_);  ///< A null extent: there is none.
  uint64_t bytes_ GUARDED_BY(mutex_);         ///< Those of the next segment.
  uint64_t wanted_bytes_ GUARDED_BY(mutex_);  ///< 0: no attempt is wanted.
  uint64_t attempts_ GUARDED_BY(mutex_) = 0;
  Status failure_ GUARDED_BY(mutex_);  ///< Failure of the last attempt.
  bool stop_ GUARDED_BY(mutex_) = false;
  bool preparing_ GUARDED_BY(mutex_) = false;
  std::unique_ptr<pool::Lane> lane_ GUARDED_BY(mutex_);
  std::vector<LogSegment> unused_ GUARDED_BY(mutex_);
  PeriodicTask task_;
};

}  // namespace nacre
