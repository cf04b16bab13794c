#pragma once

#include <vector>

#include "nacre/status.h"
#include "sharding/batches/batch_part.h"
#include "sharding/transactions/lock_participant.h"
#include "transactions/lock_manager.h"
#include "util/clock.h"

namespace nacre {

/// The locks of a shard of this process.
///
/// Thread safety: as LockParticipant.
class LocalLocks final : public LockParticipant {
 public:
  explicit LocalLocks(Clock* clock);

  /// What the table calls a transaction of this process, and the `number`th of others.
  static TransactionID IdHere(TransactionID transaction) { return transaction * 2; }
  static TransactionID IdOfOther(uint64_t number) { return number * 2 + 1; }

  /// `owner.id` is a transaction of this process.
  Status Lock(const LockOwner& owner, const LockWanted& wanted) override;
  Status Share(TransactionID owner, const KeyLock& key) override;
  Status Unlock(TransactionID owner, const std::vector<KeyLock>& keys, bool all) override;

  /// `Busy` if the owner of `part`'s locks has lost one of them.
  Status Check(const BatchPart& part) const;
  /// The locks, by what they call transactions.
  LockManager* table() { return &table_; }
  /// The shard leaves: all that is asked from here on is answered `Fenced`.
  void End() { table_.End(); }

 private:
  LockManager table_;
};

}  // namespace nacre
