#pragma once

#include <vector>

#include "nacre/status.h"
#include "sharding/batches/batch_part.h"
#include "transactions/key_locks.h"

namespace nacre {

/// The locks that a shard's owner keeps for the transactions of all members, in its memory. They
/// are gone when the shard moves, is split or merged, or its owner dies, and those of a member that
/// dies are given up. A transaction commits only where it has its locks still
/// (BatchPart::locks), so one that lost a lock changes nothing.
///
/// Thread safety: all methods may be called from many threads at once.
class LockParticipant {
 public:
  virtual ~LockParticipant() = default;

  /// As KeyLocks::Lock. Waits for `owner.timeout_ms` at most, which is not negative.
  virtual Status Lock(const LockOwner& owner, const LockWanted& wanted) = 0;
  /// As KeyLocks::Share.
  virtual Status Share(TransactionID owner, const KeyLock& key) = 0;
  /// Gives up `keys`. `all`: they are all that `owner` has got in the shard.
  virtual Status Unlock(TransactionID owner, const std::vector<KeyLock>& keys, bool all) = 0;
};

}  // namespace nacre
