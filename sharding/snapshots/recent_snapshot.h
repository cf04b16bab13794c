#pragma once

#include <atomic>
#include <memory>

#include "sharding/sharded_view.h"
#include "sharding/snapshots/sharded_snapshot.h"
#include "util/mutex.h"

namespace nacre {

/// The last snapshot that a read took of a keyspace which is all this process's, for other reads to
/// use while nothing is written: each shard's part costs a lock to take and another one to release.
///
/// Writes drop it, so that no versions are kept for its sake. One that begins beside a read may
/// miss it; then the next one drops it.
///
/// Thread safety: all methods may be called from many threads at once.
class RecentSnapshot {
 public:
  /// The one that is kept, if it shows what there is now; else null. When it was taken all shards
  /// were as it shows them, and each one that was not written since still was when the first of
  /// them was looked at.
  std::shared_ptr<const ShardedSnapshot> Current(const ShardedView& latest) const EXCLUDES(mutex_) {
    if (!held_.load(std::memory_order_relaxed)) return nullptr;
    std::shared_ptr<const ShardedSnapshot> recent;
    {
      MutexLock lock(&mutex_);
      recent = recent_;
    }
    return recent != nullptr && IsCurrent(*recent, latest) ? recent : nullptr;
  }
  void Keep(std::shared_ptr<const ShardedSnapshot> snapshot) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    recent_.swap(snapshot);  // The one before goes without the lock.
    held_.store(true, std::memory_order_relaxed);
  }
  void Drop() EXCLUDES(mutex_) {
    if (held_.load(std::memory_order_relaxed)) [[unlikely]]
      DropNow();
  }

 private:
  static bool IsCurrent(const ShardedSnapshot& snapshot, const ShardedView& latest);
  void DropNow() EXCLUDES(mutex_) {
    std::shared_ptr<const ShardedSnapshot> dropped;
    MutexLock lock(&mutex_);
    dropped.swap(recent_);
    held_.store(false, std::memory_order_relaxed);
  }

  std::atomic<bool> held_{false};
  mutable Mutex mutex_;
  std::shared_ptr<const ShardedSnapshot> recent_ GUARDED_BY(mutex_);
};

}  // namespace nacre
