#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sharding/remote/remote_owner.h"
#include "sharding/shard.h"
#include "sharding/shard_map.h"
#include "sharding/transactions/lock_participant.h"

namespace nacre {

class RemoteDB;
class ShardFollowers;

/// A shard that another member serves. Each operation is a request to it.
///
/// Thread safety: as Shard.
class RemoteShard final : public Shard, private BatchParticipant, private LockParticipant {
 public:
  /// `families` are those of the keyspace, without the default one. `followers` outlives it.
  RemoteShard(uint32_t id, std::string database, const std::vector<ShardMap::Family>& families,
              const Comparator* comparator, std::shared_ptr<RemoteOwner> owner,
              ShardFollowers* followers);
  ~RemoteShard() override;

  DB* db() const override;
  ColumnFamilyHandle* Handle(uint32_t family) const override;
  BatchParticipant* participant() override { return this; }
  LockParticipant* lock_participant() override { return this; }
  ShardOwner* owner() const override { return owner_.get(); }

 private:
  Status Prepare(const std::string& batch, const WriteOptions& options, const BatchPart& part,
                 bool decides, Deadline deadline) override;
  Status WriteAlone(const std::string& batch, const WriteOptions& options, const BatchPart& part,
                    Deadline deadline) override;
  Status BeginCommit(const std::string& batch, Deadline deadline) override;
  Status Decide(const std::string& batch, bool* refused) override;
  Status Commit(const std::string& batch) override;
  void LeaveToOwner(const std::string& batch) override;
  void Abort(const std::string& batch) override;
  Status Settle(const std::string& batch, bool* decided) override;
  void Forget(const std::string& batch) override;
  void Fail(const std::string& batch, const Status& why) override;

  // ---- remote_locks.cc ----
  Status Lock(const LockOwner& owner, const LockWanted& wanted) override;
  Status Share(TransactionID owner, const KeyLock& key) override;
  Status Unlock(TransactionID owner, const std::vector<KeyLock>& keys, bool all) override;

  const std::shared_ptr<RemoteOwner> owner_;
  std::unique_ptr<RemoteDB> db_;
};

}  // namespace nacre
