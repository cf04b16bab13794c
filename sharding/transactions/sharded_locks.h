#pragma once

#include <memory>

#include "sharding/sharded_db_impl.h"
#include "transactions/locked_database.h"

namespace nacre {

/// A keyspace without a coordinator, below transactions with locks: all of its writers are in this
/// process.
class ShardedLocks final : public LockedDatabase {
 public:
  /// `db` outlives it.
  explicit ShardedLocks(ShardedDBImpl* db);

  const Comparator* comparator() const override { return db_->opener_->options().comparator; }
  Status CheckUnwritten(uint32_t family, const Slice& key, const Snapshot& since) const override;
  std::unique_ptr<ColumnFamilyHandle> FindHandle(uint32_t family) const override {
    return db_->families_.NewHandle(family);
  }
  /// Names of transactions are keys there, so the comparator has to be one for any keys.
  PreparedStore* prepared() override { return prepared_.get(); }
  SequenceNumber SequenceOfLock() const override { return db_->GetLatestSequenceNumber(); }

 private:
  class Family;

  ShardedDBImpl* const db_;
  const std::unique_ptr<PreparedStore> prepared_;
};

}  // namespace nacre
