#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/utilities/transaction_db.h"
#include "transactions/key_tracker.h"

namespace nacre {

/// The transaction that asks for a lock, and how long it waits.
struct LockOwner {
  TransactionID id = 0;
  int64_t timeout_ms = 0;      ///< Negative: for as long as it takes.
  uint64_t expires_nanos = 0;  ///< Others may take its locks from then on; 0: never.
  bool deadlock_detect = false;
  int64_t deadlock_detect_depth = 0;
};

/// What is asked for: a lock of a key, or that the one which its owner has shared gets exclusive.
struct LockWanted {
  uint32_t family = 0;
  Slice key{};
  bool exclusive = true;
  /// The owner has it shared. `Busy` if it does not any more.
  bool upgrade = false;
};

/// Is told which transactions it waits for, under the lock manager's mutexes.
class LockWaiter {
 public:
  virtual ~LockWaiter() = default;
  virtual void BeginWait(const std::vector<TransactionID>& owners, uint32_t family,
                         const Slice& key) = 0;
  virtual void EndWait() = 0;
};

/// Whether an expired owner loses its locks. It cannot commit any more then.
using RobLocks = std::function<bool(TransactionID)>;

/// The locks of transactions: of single keys, exclusive or shared. An owner that has expired loses
/// its locks to others who want them.
///
/// Thread safety: all methods may be called from many threads at once.
class KeyLocks {
 public:
  virtual ~KeyLocks() = default;

  /// Also makes a lock that `owner` has exclusive or shared. `TimedOut`: others have it. `Busy`: to
  /// wait for them would be a deadlock, there are too many locks, or the one to be upgraded is
  /// gone. `waiter` may be null.
  virtual Status Lock(const LockOwner& owner, LockWaiter* waiter, const LockWanted& wanted) = 0;
  /// Nothing, if it has not got it.
  virtual void Unlock(TransactionID owner, uint32_t family, const Slice& key) noexcept = 0;
  /// Gives up all of `keys`: the owner ends, or begins anew.
  virtual void UnlockAll(TransactionID owner, const KeyTracker& keys) noexcept = 0;
  /// Makes an exclusive lock shared again. Nothing, if `owner` has not got it.
  virtual void Share(TransactionID owner, uint32_t family, const Slice& key) noexcept = 0;

  /// Those that this process knows of.
  virtual std::unordered_multimap<uint32_t, KeyLockInfo> Locks() const = 0;
  virtual std::vector<DeadlockPath> Deadlocks() const = 0;
  virtual void SetDeadlocksRemembered(uint32_t count) = 0;
};

}  // namespace nacre
