// The locks of a shard that another member serves.

#include <algorithm>
#include <atomic>
#include <chrono>

#include "sharding/remote/member_codec.h"
#include "sharding/remote/remote_shard.h"
#include "util/clock.h"

namespace nacre {
namespace {

using Unanswered = RemoteOwner::Unanswered;

constexpr uint64_t kNanosPerMilli = 1'000'000;

/// Never answers the same number twice in this process.
uint64_t NextAttempt() {
  static std::atomic<uint64_t> attempts{0};
  return attempts.fetch_add(1, std::memory_order_relaxed) + 1;
}

sharding::LockRequest* Begin(sharding::LockRequest::Step step, TransactionID owner,
                             sharding::MemberRequest* request, uint32_t shard) {
  request->set_shard(shard);
  sharding::LockRequest* const lock = request->mutable_lock();
  lock->set_step(step);
  lock->set_owner(owner);
  return lock;
}

}  // namespace

Status RemoteShard::Lock(const LockOwner& owner, const LockWanted& wanted) {
  const uint64_t attempt = NextAttempt();
  sharding::MemberRequest request;
  sharding::LockRequest* const lock = Begin(sharding::LockRequest::LOCK, owner.id, &request, id());
  EncodeKey(wanted.family, wanted.key, lock->add_keys());
  lock->set_exclusive(wanted.exclusive);
  lock->set_upgrade(wanted.upgrade);
  lock->set_patience_millis(static_cast<uint64_t>(std::max<int64_t>(owner.timeout_ms, 0)));
  if (owner.expires_nanos != 0) {
    const uint64_t now = Clock::System()->NowNanos();
    const uint64_t left = owner.expires_nanos > now ? owner.expires_nanos - now : 0;
    lock->set_expires_millis(std::max<uint64_t>(left / kNanosPerMilli, 1));
  }
  lock->set_deadlock_detect(owner.deadlock_detect);
  lock->set_deadlock_detect_depth(owner.deadlock_detect_depth);
  lock->set_attempt(attempt);
  sharding::MemberReply reply;
  bool answered = false;
  const Deadline deadline = owner_->OperationDeadline(std::chrono::milliseconds(owner.timeout_ms));
  Status status = owner_->Call(&request, deadline, Unanswered::kRetry, &reply, &answered);
  if (status.ok() || answered) return status;
  // It may come there yet, and the lock would stay.
  sharding::MemberRequest undo;
  sharding::LockRequest* const unlock = Begin(sharding::LockRequest::UNLOCK, owner.id, &undo, id());
  if (!wanted.upgrade) EncodeKey(wanted.family, wanted.key, unlock->add_keys());
  unlock->set_attempt(attempt);
  owner_->Call(&undo, owner_->OperationDeadline(), Unanswered::kRetry, &reply).IgnoreError();
  return status;
}

Status RemoteShard::Share(TransactionID owner, const KeyLock& key) {
  sharding::MemberRequest request;
  sharding::LockRequest* const share = Begin(sharding::LockRequest::SHARE, owner, &request, id());
  EncodeKey(key.family, key.key, share->add_keys());
  sharding::MemberReply reply;
  return owner_->Call(&request, owner_->OperationDeadline(), Unanswered::kRetry, &reply);
}

Status RemoteShard::Unlock(TransactionID owner, const std::vector<KeyLock>& keys, bool all) {
  sharding::MemberRequest request;
  sharding::LockRequest* const unlock = Begin(sharding::LockRequest::UNLOCK, owner, &request, id());
  for (const KeyLock& key : keys) EncodeKey(key.family, key.key, unlock->add_keys());
  unlock->set_all(all);
  sharding::MemberReply reply;
  return owner_->Call(&request, owner_->OperationDeadline(), Unanswered::kRetry, &reply);
}

}  // namespace nacre
