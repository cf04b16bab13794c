#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "sharding/sharded_db_impl.h"
#include "transactions/locked_database.h"

namespace nacre {

/// The locks of a keyspace with members: each key's are with the owner of its shard
/// (LockParticipant).
///
/// Thread safety: as KeyLocks.
class MemberLocks final : public KeyLocks {
 public:
  /// `db` outlives it.
  explicit MemberLocks(ShardedDBImpl* db) : db_(db) {}

  /// `waiter` is told nothing; deadlocks are found among what waits in one shard.
  Status Lock(const LockOwner& owner, LockWaiter* waiter, const LockWanted& wanted) override;
  void Unlock(TransactionID owner, uint32_t family, const Slice& key) noexcept override;
  void UnlockAll(TransactionID owner, const KeyTracker& keys) noexcept override;
  void Share(TransactionID owner, uint32_t family, const Slice& key) noexcept override;
  /// Those of the shards that this process owns.
  std::unordered_multimap<uint32_t, KeyLockInfo> Locks() const override;
  std::vector<DeadlockPath> Deadlocks() const override;
  void SetDeadlocksRemembered(uint32_t count) override;

 private:
  /// Calls `work` with the locks of the shard that has the key.
  template <typename Work>
  Status AtShardOf(const Slice& key, const Work& work) const;
  template <typename Work>
  void ForEachTable(const Work& work) const;

  ShardedDBImpl* const db_;
};

/// A keyspace with members, below transactions with locks. A transaction is committed as a batch
/// over its shards, each of whose owners looks whether it has its locks still.
class MembersBelow final : public LockedDatabase {
 public:
  /// `db` outlives it.
  explicit MembersBelow(ShardedDBImpl* db) : db_(db) {}

  const Comparator* comparator() const override { return db_->opener_->options().comparator; }
  Status CheckUnwritten(uint32_t family, const Slice& key, const Snapshot& since) const override;
  std::unique_ptr<ColumnFamilyHandle> FindHandle(uint32_t family) const override {
    return db_->families_.NewHandle(family);
  }
  PreparedStore* prepared() override { return nullptr; }
  std::unique_ptr<KeyLocks> NewLocks(const TransactionDBOptions& /*options*/,
                                     RobLocks /*rob*/) override {
    return std::make_unique<MemberLocks>(db_);
  }
  /// Those of a keyspace are sums over its shards, which all would have to be asked for. A
  /// transaction's own lock is before its next snapshot in any case.
  SequenceNumber SequenceOfLock() const override { return 0; }
  bool may_lose_locks() const override { return true; }
  Status WriteLocked(const WriteOptions& options, TransactionID owner, const KeyTracker& locked,
                     WriteBatch* updates) override;

 private:
  ShardedDBImpl* const db_;
};

}  // namespace nacre
