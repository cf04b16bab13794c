#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nacre/db.h"
#include "nacre/utilities/transaction.h"
#include "sharding/local_owner.h"
#include "sharding/local_shard.h"
#include "util/mutex.h"

namespace nacre {

/// A snapshot of a shard that was given to a client. Released when the last use of it has ended.
class ServedSnapshot {
 public:
  ServedSnapshot(std::shared_ptr<LocalShard> shard, const Snapshot* snapshot)
      : shard_(std::move(shard)), snapshot_(snapshot) {}
  ~ServedSnapshot() { shard_->db()->ReleaseSnapshot(snapshot_); }
  ServedSnapshot(const ServedSnapshot&) = delete;
  ServedSnapshot& operator=(const ServedSnapshot&) = delete;

  LocalShard* shard() const { return shard_.get(); }
  const Snapshot* get() const { return snapshot_; }

 private:
  const std::shared_ptr<LocalShard> shard_;
  const Snapshot* const snapshot_;
};

/// What the clients of a ShardServer have there, which ends with them: snapshots, gates that they
/// closed, batches that they have prepared, and locks.
///
/// Thread safety: all methods may be called from many threads at once.
class ServedClients {
 public:
  using Client = uint64_t;
  /// A shard, and the name of a batch.
  using Prepared = std::set<std::pair<uint32_t, std::string>>;

  explicit ServedClients(std::shared_ptr<LocalOwner> owner) : owner_(std::move(owner)) {}
  /// As if all clients ended, but that nothing is done for the batches.
  ~ServedClients();

  /// A client that has something here for the first time lives until EndClient, even if it ended
  /// before.
  uint64_t Keep(Client client, std::shared_ptr<ServedSnapshot> snapshot) EXCLUDES(mutex_);
  /// Null if the client has none of this id.
  std::shared_ptr<ServedSnapshot> Find(Client client, uint64_t snapshot) const EXCLUDES(mutex_);
  void Release(Client client, uint64_t snapshot) EXCLUDES(mutex_);

  void AddToken(Client client, LocalOwner::Token token) EXCLUDES(mutex_);
  void RemoveToken(Client client, LocalOwner::Token token) EXCLUDES(mutex_);

  void AddBatch(Client client, uint32_t shard, const std::string& batch) EXCLUDES(mutex_);
  void RemoveBatch(Client client, uint32_t shard, const std::string& batch) EXCLUDES(mutex_);

  /// What the locks of the shard call a transaction of the client, which may lock keys there from
  /// here on; `FindLocker`: 0 if it does not.
  TransactionID AddLocker(Client client, uint64_t transaction,
                          const std::shared_ptr<LocalShard>& shard) EXCLUDES(mutex_);
  TransactionID FindLocker(Client client, uint64_t transaction, const LocalShard& shard) const
      EXCLUDES(mutex_);
  /// The transaction has nothing locked there.
  void RemoveLocker(Client client, uint64_t transaction, const LocalShard& shard) EXCLUDES(mutex_);
  /// An attempt to lock a key that the client has given up, and that may be under way.
  void CancelAttempt(Client client, uint64_t attempt) EXCLUDES(mutex_);
  /// Whether a lock may stay that such an attempt has just got for `owner`, as AddLocker named the
  /// transaction: the client has not ended meanwhile, nor given the attempt up. Either of them
  /// gives up later what was got before.
  bool MayKeepLock(Client client, uint64_t transaction, TransactionID owner, uint64_t attempt) const
      EXCLUDES(mutex_);

  /// Releases, opens and unlocks what the client has, and answers its batches.
  Prepared EndClient(Client client) EXCLUDES(mutex_);
  /// Drops the snapshots and locks of a shard that is served no more.
  void DropBelongingsOf(uint32_t shard) EXCLUDES(mutex_);

 private:
  struct Locker {
    TransactionID id = 0;
    std::set<std::shared_ptr<LocalShard>> shards;
  };
  struct Belongings {
    std::map<uint64_t, std::shared_ptr<ServedSnapshot>> snapshots;
    std::set<LocalOwner::Token> tokens;
    Prepared batches;
    std::map<uint64_t, Locker> lockers;  ///< By their transactions.
    std::set<uint64_t> cancelled;        ///< Attempts to lock keys.
  };

  /// Null if it has locked nothing.
  const Locker* LockerOf(Client client, uint64_t transaction) const REQUIRES(mutex_);

  const std::shared_ptr<LocalOwner> owner_;
  mutable Mutex mutex_;
  uint64_t last_snapshot_ GUARDED_BY(mutex_) = 0;
  uint64_t last_locker_ GUARDED_BY(mutex_) = 0;
  std::map<Client, Belongings> clients_ GUARDED_BY(mutex_);
};

}  // namespace nacre
