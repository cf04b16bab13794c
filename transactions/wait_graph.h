#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "nacre/slice.h"
#include "nacre/utilities/transaction_db.h"
#include "util/mutex.h"

namespace nacre {

/// Records which transactions wait for which, and finds circles before they close. Only those that
/// look for deadlocks are in it, as in RocksDB. Thread safety: all methods may be called from many
/// threads at once.
class WaitGraph {
 public:
  explicit WaitGraph(uint32_t remembered) : remembered_(remembered) {}

  /// `waiter` is about to wait for `owners`, of which it is none. False, and nothing is added, if
  /// that would close a circle, or more than `depth` transactions would have to be looked at to
  /// know.
  bool Add(const DeadlockInfo& waiter, const std::vector<TransactionID>& owners, int64_t depth)
      EXCLUDES(mutex_);
  void Remove(TransactionID waiter) EXCLUDES(mutex_);

  /// The last ones, newest first.
  std::vector<DeadlockPath> Deadlocks() const EXCLUDES(mutex_);
  void SetRemembered(uint32_t deadlocks) EXCLUDES(mutex_);

 private:
  struct Waiter {
    DeadlockInfo info;
    std::vector<TransactionID> owners;
  };
  void Remember(DeadlockPath path) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<TransactionID, Waiter> waiters_ GUARDED_BY(mutex_);
  uint32_t remembered_ GUARDED_BY(mutex_);
  std::deque<DeadlockPath> deadlocks_ GUARDED_BY(mutex_);  ///< Newest first.
};

}  // namespace nacre
