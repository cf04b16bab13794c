#pragma once

#include <memory>
#include <vector>

#include "sharding/sharded_db_impl.h"
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
    return db_->FindHandle(family);
  }

 private:
  void Add(const ShardState& state);

  ShardedDBImpl* const db_;
  std::vector<ShardState> states_;
};

}  // namespace nacre
