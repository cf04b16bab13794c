#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "nacre/status.h"
#include "sharding/shard_map.h"
#include "sharding/shard_opener.h"
#include "util/mutex.h"

namespace nacre {

/// The map of a keyspace as the pool has it, beside the coordinator: it tells which databases have
/// which keys and families when the coordinator has lost everything. The member that leads has its
/// database open all the time, as the owner repairs what nodes that die had of it.
///
/// Thread safety: all methods may be called from many threads at once. They wait for one another.
class PoolMap {
 public:
  /// `opener` tells what keyspace it is, and outlives it.
  explicit PoolMap(const ShardOpener* opener) : of_keyspace_(opener) {}
  /// As Close.
  ~PoolMap() { Close(); }

  /// Opens it, taking it over from the member that led before, unless it is open and this
  /// process's. Then has it say what `map` says, unless it has a later one.
  Status Keep(const ShardMap& map) EXCLUDES(mutex_);
  /// Lets another process have it.
  void Release() EXCLUDES(mutex_);
  /// The same for good: Keep answers `ShutdownInProgress` from here on.
  void Close() EXCLUDES(mutex_);
  bool is_open() const { return is_open_.load(std::memory_order_relaxed); }

 private:
  Status Open() REQUIRES(mutex_);
  void ReleaseNow() REQUIRES(mutex_);

  const ShardOpener* const of_keyspace_;
  Mutex mutex_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::unique_ptr<ShardOpener> open_ GUARDED_BY(mutex_);  ///< Null: it is not open.
  ShardMap there_ GUARDED_BY(mutex_);                     ///< What it says.
  std::atomic<bool> is_open_{false};                      ///< Whether open_ is set.
};

}  // namespace nacre
