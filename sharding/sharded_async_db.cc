#include "sharding/sharded_async_db.h"

#include <utility>

#include "db/db_impl.h"
#include "sharding/local_shard.h"
#include "sharding/sharded_db_impl.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

/// Reads that wait at the same time.
constexpr int kReaders = 16;

}  // namespace

struct ShardedAsyncDB::Call final : DrivenOperation {
  using DrivenOperation::DrivenOperation;
  void Recycle() override { delete this; }
  void TakeResult() override { driver->End(this, std::move(status_)); }
};

ShardedAsyncDB::ShardedAsyncDB(ShardedDBImpl* db, ShardedViews* views, AsyncExecutor* executor,
                               TaskThreads* threads)
    : AsyncDriver(executor),
      db_(db),
      views_(views),
      readers_(threads->NewExecutor(kReaders, "nacre-async")),
      writer_(threads->NewExecutor(1, "nacre-async-w")) {}

ShardedAsyncDB::~ShardedAsyncDB() = default;

bool ShardedAsyncDB::AreHere(size_t num_keys, const Slice* keys) const {
  const ShardedViews::Pin view(views_);
  for (size_t i = 0; i < num_keys; ++i) {
    const LocalShard* const shard = view->shards[view->map.Find(keys[i])]->local();
    if (shard == nullptr || !shard->engine()->parts()->context.client->device()->may_map()) {
      return false;
    }
  }
  return true;
}

AsyncStatus ShardedAsyncDB::Ended(Status status) {
  auto* const call = std::make_unique<Call>(static_cast<AsyncDriver*>(this)).release();
  call->status_ = std::move(status);
  call->ended_ = true;
  return AsyncStatus(call);
}

AsyncStatus ShardedAsyncDB::LeaveToThread(Executor* threads, std::function<Status()> work) {
  auto* const call = std::make_unique<Call>(static_cast<AsyncDriver*>(this)).release();
  Begin();
  threads->Schedule([this, call, done = std::move(work)] {
    call->status_ = CatchAll(done);
    Finished(call);
  });
  Wake();
  return AsyncStatus(call);
}

AsyncStatus ShardedAsyncDB::GetAsync(const ReadOptions& options, ColumnFamilyHandle* family,
                                     const Slice& key, PinnableSlice* value) {
  if (AreHere(1, &key)) return Ended(db_->Get(options, family, key, value));
  return LeaveToThread(readers_.get(), [this, options, family, key, value] {
    return db_->Get(options, family, key, value);
  });
}

AsyncStatus ShardedAsyncDB::MultiGetAsync(const ReadOptions& options, ColumnFamilyHandle* family,
                                          size_t num_keys, const Slice* keys, PinnableSlice* values,
                                          Status* statuses) {
  const auto read = [=, this] {
    db_->MultiGet(options, family, num_keys, keys, values, statuses);
    return Status::OK();
  };
  return AreHere(num_keys, keys) ? Ended(read()) : LeaveToThread(readers_.get(), read);
}

AsyncStatus ShardedAsyncDB::WriteAsync(const WriteOptions& options, WriteBatch* updates) {
  return LeaveToThread(writer_.get(),
                       [this, options, updates] { return db_->Write(options, updates); });
}

}  // namespace nacre
