#include "transactions/lock_manager.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "util/hash.h"

namespace nacre {
namespace {

/// A wait that is told of for a scope.
class Waiting {
 public:
  /// Both may be null. `owner` is in `graph` already; `waiter` is told next.
  Waiting(WaitGraph* graph, TransactionID owner, LockWaiter* waiter)
      : graph_(graph), owner_(owner), waiter_(waiter) {}
  ~Waiting() {
    if (waiter_ != nullptr) waiter_->EndWait();
    if (graph_ != nullptr) graph_->Remove(owner_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  WaitGraph* const graph_;
  const TransactionID owner_;
  LockWaiter* const waiter_;
};

}  // namespace

size_t LockManager::HashOf::operator()(const KeyView& key) const {
  constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;
  return Hash64(key.key) + key.family * kSpread;
}

LockManager::LockManager(const TransactionDBOptions& options, Clock* clock, RobLocks rob)
    : limit_(options.max_num_locks),
      stripe_count_(std::max<size_t>(options.num_stripes, 1)),
      rob_(std::move(rob)),
      clock_(clock),
      stripes_(std::make_unique<Stripe[]>(stripe_count_)),
      graph_(options.max_num_deadlocks) {}

LockManager::Stripe* LockManager::StripeOf(const KeyView& key) const {
  return &stripes_[HashOf()(key) % stripe_count_];
}

bool LockManager::RobAll(const Held& held, TransactionID owner) const {
  return std::all_of(held.owners.begin(), held.owners.end(),
                     [&](TransactionID id) { return id == owner || rob_(id); });
}

Status LockManager::AddLock(Stripe* stripe, const LockOwner& owner, const KeyView& key,
                            bool exclusive) {
  // All that may throw comes before it counts.
  const auto added = stripe->keys.try_emplace({key.family, key.key.ToString()},
                                              Held{{owner.id}, exclusive, owner.expires_nanos});
  if (limit_ > 0 && count_.fetch_add(1, std::memory_order_relaxed) >= limit_) {
    count_.fetch_sub(1, std::memory_order_relaxed);
    stripe->keys.erase(added.first);
    return Status::Busy("lock limit of " + std::to_string(limit_) + " reached");
  }
  return Status::OK();
}

bool LockManager::TryLock(Stripe* stripe, const LockOwner& owner, const KeyView& key,
                          bool exclusive, std::vector<TransactionID>* others,
                          uint64_t* expires_nanos, Status* status) {
  const auto found = stripe->keys.find(key);
  if (found == stripe->keys.end()) {
    *status = AddLock(stripe, owner, key, exclusive);
    return true;
  }
  Held& held = found->second;
  const bool mine =
      std::find(held.owners.begin(), held.owners.end(), owner.id) != held.owners.end();
  const bool alone = mine && held.owners.size() == 1;
  if (alone) {
    if (held.exclusive && !exclusive && stripe->waiters > 0) stripe->changed.SignalAll();
    held.exclusive = exclusive;
    held.expires_nanos = owner.expires_nanos;
    return true;
  }
  if (!held.exclusive && !exclusive) {
    if (!mine) held.owners.push_back(owner.id);
    const bool never = held.expires_nanos == 0 || owner.expires_nanos == 0;
    held.expires_nanos = never ? 0 : std::max(held.expires_nanos, owner.expires_nanos);
    // Waiters now wait for one more owner.
    if (stripe->waiters > 0) stripe->changed.SignalAll();
    return true;
  }
  if (held.expires_nanos != 0 && clock_->NowNanos() >= held.expires_nanos &&
      RobAll(held, owner.id)) {
    held = {{owner.id}, exclusive, owner.expires_nanos};
    return true;
  }
  others->clear();
  for (const TransactionID id : held.owners) {
    if (id != owner.id) others->push_back(id);
  }
  *expires_nanos = held.expires_nanos;
  return false;
}

Status LockManager::Wait(Stripe* stripe, const LockOwner& owner, LockWaiter* waiter,
                         const DeadlockInfo& info, const std::vector<TransactionID>& others,
                         uint64_t expires_nanos, const Deadline* deadline) {
  // An expired owner that cannot lose its locks is about to end, and says so.
  constexpr auto kSlice = std::chrono::seconds(1);
  if (owner.deadlock_detect && !graph_.Add(info, others, owner.deadlock_detect_depth)) {
    return Status::Busy("deadlock: transaction " + std::to_string(owner.id) +
                        " would wait for one that waits for it");
  }
  const Waiting waiting(owner.deadlock_detect ? &graph_ : nullptr, owner.id, waiter);
  if (waiter != nullptr) waiter->BeginWait(others, info.m_cf_id, info.m_waiting_key);
  std::chrono::nanoseconds time = kSlice;
  if (deadline != nullptr) time = std::min(time, deadline->Remaining());
  const uint64_t now = clock_->NowNanos();
  if (expires_nanos > now) time = std::min(time, std::chrono::nanoseconds(expires_nanos - now));
  ++stripe->waiters;
  stripe->changed.WaitFor(time);
  --stripe->waiters;
  return Status::OK();
}

Status LockManager::Lock(const LockOwner& owner, LockWaiter* waiter, const LockWanted& wanted) {
  const KeyView locked_key{wanted.family, wanted.key};
  Stripe* const stripe = StripeOf(locked_key);
  std::optional<Deadline> deadline;
  MutexLock lock(&stripe->mutex);
  for (;;) {
    if (stripe->ended) return Status::Fenced("the locks are another process's now");
    if (wanted.upgrade && !HoldsIn(*stripe, owner.id, locked_key)) {
      return Status::Busy("the lock was lost");
    }
    std::vector<TransactionID> others;
    uint64_t expires_nanos = 0;
    Status status;
    if (TryLock(stripe, owner, locked_key, wanted.exclusive, &others, &expires_nanos, &status)) {
      return status;
    }
    if (!deadline.has_value() && owner.timeout_ms >= 0) {
      deadline = Deadline::After(clock_, std::chrono::milliseconds(owner.timeout_ms));
    }
    if (deadline.has_value() && deadline->Expired()) {
      return Status::TimedOut("lock timeout: the key is locked by transaction " +
                              std::to_string(others.front()));
    }
    NACRE_RETURN_IF_ERROR(Wait(stripe, owner, waiter,
                               {owner.id, wanted.family, wanted.exclusive, wanted.key.ToString()},
                               others, expires_nanos, deadline.has_value() ? &*deadline : nullptr));
  }
}

void LockManager::Share(TransactionID owner, uint32_t family, const Slice& key) noexcept {
  const KeyView locked_key{family, key};
  Stripe* const stripe = StripeOf(locked_key);
  MutexLock lock(&stripe->mutex);
  const auto found = stripe->keys.find(locked_key);
  if (found == stripe->keys.end() || found->second.owners.front() != owner) return;
  found->second.exclusive = false;
  if (stripe->waiters > 0) stripe->changed.SignalAll();
}

void LockManager::Unlock(TransactionID owner, uint32_t family, const Slice& key) noexcept {
  const KeyView locked_key{family, key};
  Stripe* const stripe = StripeOf(locked_key);
  MutexLock lock(&stripe->mutex);
  if (const auto found = stripe->keys.find(locked_key); found != stripe->keys.end()) {
    Remove(stripe, owner, found);
  }
}

LockManager::LockedKeys::iterator LockManager::Remove(Stripe* stripe, TransactionID owner,
                                                      LockedKeys::iterator locked) {
  std::vector<TransactionID>& owners = locked->second.owners;
  const auto mine = std::find(owners.begin(), owners.end(), owner);
  if (mine == owners.end()) return std::next(locked);  // It was robbed.
  owners.erase(mine);
  if (stripe->waiters > 0) stripe->changed.SignalAll();
  if (!owners.empty()) return std::next(locked);
  if (limit_ > 0) count_.fetch_sub(1, std::memory_order_relaxed);
  return stripe->keys.erase(locked);
}

void LockManager::UnlockAll(TransactionID owner, const KeyTracker& keys) noexcept {
  keys.ForEach([this, owner](uint32_t family, const std::string& key, const TrackedKey&) {
    Unlock(owner, family, key);
  });
}

void LockManager::UnlockAll(TransactionID owner) noexcept {
  for (size_t i = 0; i < stripe_count_; ++i) {
    Stripe* const stripe = &stripes_[i];
    MutexLock lock(&stripe->mutex);
    for (auto it = stripe->keys.begin(); it != stripe->keys.end();) it = Remove(stripe, owner, it);
  }
}

bool LockManager::HoldsIn(const Stripe& stripe, TransactionID owner, const KeyView& key) {
  const auto found = stripe.keys.find(key);
  return found != stripe.keys.end() &&
         std::ranges::find(found->second.owners, owner) != found->second.owners.end();
}

bool LockManager::Holds(TransactionID owner, uint32_t family, const Slice& key) const {
  const KeyView locked_key{family, key};
  Stripe* const stripe = StripeOf(locked_key);
  MutexLock lock(&stripe->mutex);
  return HoldsIn(*stripe, owner, locked_key);
}

void LockManager::End() {
  for (size_t i = 0; i < stripe_count_; ++i) {
    Stripe& stripe = stripes_[i];
    MutexLock lock(&stripe.mutex);
    stripe.ended = true;
    stripe.keys.clear();
    stripe.changed.SignalAll();
  }
}

std::unordered_multimap<uint32_t, KeyLockInfo> LockManager::Locks() const {
  std::unordered_multimap<uint32_t, KeyLockInfo> result;
  for (size_t i = 0; i < stripe_count_; ++i) {
    Stripe& stripe = stripes_[i];
    MutexLock lock(&stripe.mutex);
    for (const auto& [locked_key, held] : stripe.keys) {
      result.emplace(locked_key.family, KeyLockInfo{locked_key.key, held.owners, held.exclusive});
    }
  }
  return result;
}

}  // namespace nacre
