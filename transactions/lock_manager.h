#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/utilities/transaction_db.h"
#include "transactions/wait_graph.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

/// The transaction that asks for a lock, and how long it waits.
struct LockOwner {
  TransactionID id = 0;
  int64_t timeout_ms = 0;      ///< Negative: for as long as it takes.
  uint64_t expires_nanos = 0;  ///< Others may take its locks from then on; 0: never.
  bool deadlock_detect = false;
  int64_t deadlock_detect_depth = 0;
};

/// Is told which transactions it waits for, under the lock manager's mutexes.
class LockWaiter {
 public:
  virtual ~LockWaiter() = default;
  virtual void BeginWait(const std::vector<TransactionID>& owners, uint32_t family,
                         const Slice& key) = 0;
  virtual void EndWait() = 0;
};

/// Locks of single keys, exclusive or shared, divided among stripes by hash. An owner that has
/// expired loses its locks to others who want them.
///
/// A waiter sleeps on its stripe's condition, and checks again whenever a lock of the stripe is
/// given up or gets one more owner: that keeps the graph of waits true, too. There is no queue.
///
/// A call that throws (out of memory) leaves no lock and no wait behind. Giving up a lock takes no
/// memory.
///
/// Thread safety: all methods may be called from many threads at once.
class LockManager {
 public:
  /// Whether an expired owner loses its locks. It cannot commit any more then.
  using Rob = std::function<bool(TransactionID)>;
  LockManager(const TransactionDBOptions& options, Rob rob);

  /// Also makes a lock that `owner` has exclusive or shared. `TimedOut`: others have it. `Busy`: to
  /// wait for them would be a deadlock, or there are too many locks. `waiter` may be null.
  Status Lock(const LockOwner& owner, LockWaiter* waiter, uint32_t family, const Slice& key,
              bool exclusive);
  /// Nothing, if it has not got it.
  void Unlock(TransactionID owner, uint32_t family, const Slice& key) noexcept;
  /// Makes an exclusive lock shared again. Nothing, if `owner` has not got it.
  void Share(TransactionID owner, uint32_t family, const Slice& key) noexcept;

  std::unordered_multimap<uint32_t, KeyLockInfo> Locks() const;
  WaitGraph* graph() { return &graph_; }

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
  struct Stripe {
    Mutex mutex;
    CondVar changed{&mutex};
    int waiters GUARDED_BY(mutex) = 0;
    std::unordered_map<LockedKey, Held, HashOf, AreEqual> keys GUARDED_BY(mutex);
  };

  Stripe* StripeOf(const KeyView& key) const;
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
  const Rob rob_;
  Clock* const clock_;
  std::atomic<int64_t> count_{0};
  const std::unique_ptr<Stripe[]> stripes_;
  WaitGraph graph_;
};

}  // namespace nacre
