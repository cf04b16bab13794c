// Optimistic transactions over a keyspace.

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "nacre/utilities/optimistic_transaction_db.h"
#include "sharding/batch_parts.h"
#include "sharding/remote/remote_db.h"
#include "sharding/sharded_db_impl.h"
#include "sharding/shared_batch.h"
#include "sharding/transactions/sharded_checks.h"
#include "transactions/optimistic_transaction.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

/// Plain writes wait for a transaction that is being committed where its owner holds its keys.
class ShardedTransactionDB final : public OptimisticTransactionDB {
 public:
  explicit ShardedTransactionDB(std::unique_ptr<ShardedDB> db)
      : OptimisticTransactionDB(std::move(db)), impl_(static_cast<ShardedDBImpl*>(db_.get())) {}

  std::unique_ptr<Transaction> BeginTransaction(
      const WriteOptions& write_options, const OptimisticTransactionOptions& options) override {
    return std::make_unique<OptimisticTransaction>(
        db_.get(), std::make_unique<ShardedChecks>(impl_), write_options, options,
        impl_->comparator(), next_id_.fetch_add(1, std::memory_order_relaxed));
  }

 private:
  ShardedDBImpl* const impl_;
  std::atomic<TransactionID> next_id_{1};
};

Status HasMoved(uint32_t shard) {
  return Status::Busy("commit: shard " + std::to_string(shard) +
                      " has moved since this transaction tracked its keys");
}

}  // namespace

// ---- States of shards ---------------------------------------------------------------------------

ShardState ShardedDBImpl::StateIn(const std::shared_ptr<const Snapshot>& snapshot,
                                  const Slice& key) {
  const auto* const all = static_cast<const ShardedSnapshot*>(snapshot.get());
  const size_t index = all->view().map.Find(key);
  return {.shard = all->view().shards[index], .snapshot = {snapshot, all->of_shard(index)}};
}

Status ShardedDBImpl::TakeStateOf(ColumnFamilyHandle* handle, const Slice& key,
                                  const std::vector<ShardState>& known, size_t at_most,
                                  ShardState* state) {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(families_.Find(handle, &family));
  return WithView([&](const ShardedView& view) -> Status {
    const std::shared_ptr<Shard>& shard = view.shards[view.map.Find(key)];
    const ShardState* last = nullptr;
    size_t count = 0;
    for (const ShardState& each : known) {
      if (!each.IsOf(*shard)) continue;
      last = &each;
      ++count;
    }
    const bool is_current =
        last != nullptr && shard->local() != nullptr &&
        last->snapshot->GetSequenceNumber() == shard->db()->GetLatestSequenceNumber();
    if (is_current || count >= at_most) {
      *state = *last;
      return Status::OK();
    }
    const Snapshot* taken = nullptr;
    if (shard->local() == nullptr) {
      std::unique_ptr<RemoteSnapshot> remote;
      NACRE_RETURN_IF_ERROR(static_cast<RemoteDB*>(shard->db())->TakeSnapshot(&remote));
      taken = remote.release();
    } else {
      const auto keys = [&] { return KeySets{{.family = family->id(), .begin = key.ToString()}}; };
      NACRE_RETURN_IF_ERROR(shard->local()->Read(keys, [&] {
        taken = shard->db()->GetSnapshot();
        return taken == nullptr ? Status::Unavailable("no snapshot can be taken") : Status::OK();
      }));
    }
    *state = {.shard = shard, .snapshot = {taken, [shard](const Snapshot* held) {
                                             shard->db()->ReleaseSnapshot(held);
                                           }}};
    return Status::OK();
  });
}

// ---- Commit -------------------------------------------------------------------------------------

Status ShardedDBImpl::WriteChecked(const WriteOptions& options, const std::vector<CheckedKey>& keys,
                                   const std::vector<ShardState>& states, WriteBatch* updates) {
  const Status status = WithView([&](const ShardedView& view) -> Status {
    std::vector<BatchPart> parts;
    NACRE_RETURN_IF_ERROR(DivideBatch(view.map, *updates, &parts));
    std::map<size_t, BatchPart> by_shard;
    for (BatchPart& part : parts) by_shard.emplace(part.shard, std::move(part));
    for (const CheckedKey& each : keys) {
      const size_t index = view.map.Find(each.key);
      const Shard& shard = *view.shards[index];
      const auto state = std::ranges::find_if(states, [&](const ShardState& known) {
        return known.IsOf(shard) && known.snapshot->GetSequenceNumber() == each.sequence;
      });
      if (state == states.end()) return HasMoved(shard.id());
      BatchPart& part = by_shard[index];
      part.shard = index;
      part.checks.push_back(
          {.family = each.family, .key = each.key, .since = state->snapshot.get()});
    }
    parts.clear();
    for (auto& [index, part] : by_shard) parts.push_back(std::move(part));
    if (parts.empty()) return Status::OK();
    if (parts.size() == 1) {
      return view.shards[parts.front().shard]->participant()->WriteAlone(
          NextBatch(), options, parts.front(), OperationDeadline());
    }
    SharedBatch batch(view, &parts, NextBatch());
    return updates->Count() == 0 ? batch.Check(OperationDeadline())
                                 : batch.Commit(options, OperationDeadline());
  });
  // The owner has no snapshot any more that a key is compared with.
  return status.IsAborted() ? Status::Busy(status.message()) : status;
}

// ---- Opening ------------------------------------------------------------------------------------

Status OptimisticTransactionDB::Open(const ShardedOptions& options, const std::string& name,
                                     std::unique_ptr<OptimisticTransactionDB>* db) {
  std::vector<ColumnFamilyHandle*> handles;
  NACRE_RETURN_IF_ERROR(Open(
      options, name, {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options)}, &handles, db));
  return (*db)->DestroyColumnFamilyHandle(handles.front());
}

Status OptimisticTransactionDB::Open(const ShardedOptions& options, const std::string& name,
                                     const std::vector<ColumnFamilyDescriptor>& families,
                                     std::vector<ColumnFamilyHandle*>* handles,
                                     std::unique_ptr<OptimisticTransactionDB>* db) {
  std::unique_ptr<ShardedDB> base;
  NACRE_RETURN_IF_ERROR(ShardedDB::Open(options, name, families, handles, &base));
  *db = std::make_unique<ShardedTransactionDB>(std::move(base));
  return Status::OK();
}

}  // namespace nacre
