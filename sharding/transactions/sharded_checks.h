#pragma once

#include <memory>
#include <vector>

#include "sharding/sharded_db_impl.h"
#include "sharding/transactions/shard_state.h"
#include "sharding/transactions/transaction_parts.h"
#include "transactions/write_checks.h"

namespace nacre {

/// Those of a keyspace: the owner of each shard compares the keys in it when it prepares the
/// transaction's batch, while this holds them. A key whose shard was moved, split or merged since
/// it was tracked counts as written, as the snapshots are gone then.
class ShardedChecks final : public WriteChecks {
 public:
  /// `db` outlives it.
  explicit ShardedChecks(ShardedDBImpl* db) : db_(db) {}

  Status Watch(ColumnFamilyHandle* family, const Slice& key,
               const std::shared_ptr<const Snapshot>& snapshot, SequenceNumber* sequence) override;
  Status Write(const WriteOptions& options, const KeyTracker& tracked,
               WriteBatch* updates) override;
  void Clear() override { states_.clear(); }
  std::unique_ptr<ColumnFamilyHandle> FindHandle(uint32_t family) const override {
    return db_->families_.NewHandle(family);
  }

 private:
  /// The latest state of the key's shard.
  Status TakeState(ColumnFamilyHandle* family, const Slice& key, ShardState* state) const;
  Status TakeStateOf(const std::shared_ptr<Shard>& shard, uint32_t family, const Slice& key,
                     ShardState* state) const;
  Status WriteIn(const ShardedView& view, const WriteOptions& options, const KeyTracker& tracked,
                 const WriteBatch& updates) const;
  /// `Busy` if the shard of a key has moved.
  Status AddChecks(const ShardedView& view, const KeyTracker& tracked,
                   TransactionParts* parts) const;

  ShardedDBImpl* const db_;
  std::vector<ShardState> states_;  ///< Those that keys are compared with.
};

}  // namespace nacre
