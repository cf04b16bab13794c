#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/utilities/transaction_db.h"
#include "transactions/key_locks.h"
#include "transactions/wait_graph.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

/// Locks in the memory of this process, divided among stripes by hash.
///
/// A waiter sleeps on its stripe's condition, and checks again whenever a lock of the stripe is
/// given up or gets one more owner: that keeps the graph of waits true, too. There is no queue.
///
/// A call that throws (out of memory) leaves no lock and no wait behind. Giving up a lock takes no
/// memory.
///
/// Thread safety: all methods may be called from many threads at once.
class LockManager final : public KeyLocks {
 public:
  LockManager(const TransactionDBOptions& options, Clock* clock, RobLocks rob);

  /// `Fenced` since End.
  Status Lock(const LockOwner& owner, LockWaiter* waiter, const LockWanted& wanted) override;
  void Unlock(TransactionID owner, uint32_t family, const Slice& key) noexcept override;
  void UnlockAll(TransactionID owner, const KeyTracker& keys) noexcept override;
  /// Gives up all that `owner` has got, by looking at every lock.
  void UnlockAll(TransactionID owner) noexcept;
  void Share(TransactionID owner, uint32_t family, const Slice& key) noexcept override;

  bool Holds(TransactionID owner, uint32_t family, const Slice& key) const;
  /// No lock is held, given or waited for from here on.
  void End();

  std::unordered_multimap<uint32_t, KeyLockInfo> Locks() const override;
  std::vector<DeadlockPath> Deadlocks() const override { return graph_.Deadlocks(); }
  void SetDeadlocksRemembered(uint32_t count) override { graph_.SetRemembered(count); }

 private:
  struct Held {
    std::vector<TransactionID> owners;
    bool exclusive = true;
    uint64_t expires_nanos = 0;  ///< The latest time of all owners; 0: never.
  };
  /// A key of a family. Looked up by a view of it, which takes no memory.
  struct KeyView {
    uint32_t family;
    Slice key;
  };
  struct LockedKey {
    uint32_t family;
    std::string key;
    operator KeyView() const { return {family, key}; }  // NOLINT: for both to be looked up alike.
  };
  struct HashOf {
    using is_transparent = void;
    size_t operator()(const KeyView& key) const;
  };
  struct AreEqual {
    using is_transparent = void;
    bool operator()(const KeyView& a, const KeyView& b) const {
      return a.family == b.family && a.key == b.key;
    }
  };
  using LockedKeys = std::unordered_map<LockedKey, Held, HashOf, AreEqual>;
  struct Stripe {
    Mutex mutex;
    CondVar changed{&mutex};
    int waiters GUARDED_BY(mutex) = 0;
    bool ended GUARDED_BY(mutex) = false;
    LockedKeys keys GUARDED_BY(mutex);
  };

  Stripe* StripeOf(const KeyView& key) const;
  static bool HoldsIn(const Stripe& stripe, TransactionID owner, const KeyView& key)
      REQUIRES(stripe.mutex);
  /// Takes `owner` out of those that have the lock. Answers what comes after it.
  LockedKeys::iterator Remove(Stripe* stripe, TransactionID owner, LockedKeys::iterator locked)
      REQUIRES(stripe->mutex);
  /// False: `*others` have it, and keep it until `*expires_nanos` at least (0: for ever).
  bool TryLock(Stripe* stripe, const LockOwner& owner, const KeyView& key, bool exclusive,
               std::vector<TransactionID>* others, uint64_t* expires_nanos, Status* status)
      REQUIRES(stripe->mutex);
  /// Takes a lock that is free. `Busy`: there are too many.
  Status AddLock(Stripe* stripe, const LockOwner& owner, const KeyView& key, bool exclusive)
      REQUIRES(stripe->mutex);
  /// All but `owner`.
  bool RobAll(const Held& held, TransactionID owner) const;
  /// Waits until a lock of the stripe changes, one expires, or the deadline. `Busy` for a deadlock.
  Status Wait(Stripe* stripe, const LockOwner& owner, LockWaiter* waiter, const DeadlockInfo& info,
              const std::vector<TransactionID>& others, uint64_t expires_nanos,
              const Deadline* deadline) REQUIRES(stripe->mutex);

  const int64_t limit_;
  const size_t stripe_count_;
  const RobLocks rob_;
  Clock* const clock_;
  std::atomic<int64_t> count_{0};
  const std::unique_ptr<Stripe[]> stripes_;
  WaitGraph graph_;
};

}  // namespace nacre
