#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "db/read/async_driver.h"
#include "nacre/async.h"
#include "sharding/sharded_view.h"
#include "util/threads/executor.h"
#include "util/threads/task_threads.h"

namespace nacre {

class ShardedDBImpl;

/// AsyncDB of a keyspace. What shards of this process have in memory that it has mapped is read at
/// once: that takes no longer than to leave it to others. All else is done by threads, which wait
/// for nodes, for members and for batches over several shards; writes in the order of the calls.
class ShardedAsyncDB final : public AsyncDB, private AsyncDriver {
 public:
  /// All outlive it.
  ShardedAsyncDB(ShardedDBImpl* db, ShardedViews* views, AsyncExecutor* executor,
                 TaskThreads* threads);
  ~ShardedAsyncDB() override;

  using AsyncDB::GetAsync;
  using AsyncDB::MultiGetAsync;
  AsyncStatus GetAsync(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                       PinnableSlice* value) override;
  AsyncStatus MultiGetAsync(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                            const Slice* keys, PinnableSlice* values, Status* statuses) override;
  AsyncStatus WriteAsync(const WriteOptions& options, WriteBatch* updates) override;
  size_t under_way() const override { return operations(); }

 private:
  struct Call;

  void Turn() override { TakeFinished(); }
  /// Whether the keys' shards can be read without waiting for nodes or members.
  bool AreHere(size_t num_keys, const Slice* keys) const;
  /// One that has ended.
  AsyncStatus Ended(Status status);
  AsyncStatus LeaveToThread(Executor* threads, std::function<Status()> work);

  ShardedDBImpl* const db_;
  ShardedViews* const views_;
  const std::unique_ptr<Executor> readers_;
  const std::unique_ptr<Executor> writer_;  ///< In the order of the calls.
};

}  // namespace nacre
