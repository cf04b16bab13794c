// What a ShardService does with the locks of transactions of other members.

#include <algorithm>
#include <limits>

#include "sharding/remote/shard_service.h"
#include "util/planted_bug.h"

namespace nacre {

using sharding::LockRequest;

namespace {

constexpr uint64_t kNanosInMilli = 1'000'000;

}  // namespace

Status ShardService::RunLock(Client client, const std::shared_ptr<LocalShard>& shard,
                             const LockRequest& request, bool* would_wait) {
  switch (request.step()) {
    case LockRequest::LOCK:
      return Lock(client, shard, request, would_wait);
    case LockRequest::SHARE: {
      const TransactionID owner = clients_->FindLocker(client, request.owner(), *shard);
      for (const sharding::LockedKey& key : request.keys()) {
        shard->locks()->table()->Share(owner, key.family(), key.key());
      }
      return Status::OK();
    }
    case LockRequest::UNLOCK:
      Unlock(client, shard.get(), request);
      return Status::OK();
    default:
      return Status::NotSupported("this member does not know the step");
  }
}

Status ShardService::Lock(Client client, const std::shared_ptr<LocalShard>& shard,
                          const LockRequest& request, bool* would_wait) {
  if (request.keys_size() != 1) return Status::InvalidArgument("a lock of other than one key");
  const sharding::LockedKey& key = request.keys(0);
  LockManager* const locks = shard->locks()->table();
  LockOwner owner{.id = clients_->AddLocker(client, request.owner(), shard),
                  .deadlock_detect = request.deadlock_detect(),
                  .deadlock_detect_depth = request.deadlock_detect_depth()};
  constexpr uint64_t kLongest = std::numeric_limits<int32_t>::max();
  if (request.expires_millis() > 0) {
    owner.expires_nanos =
        clock_->NowNanos() + std::min(request.expires_millis(), kLongest) * kNanosInMilli;
  }
  const bool may_wait = request.patience_millis() > 0;
  if (would_wait == nullptr) {
    owner.timeout_ms = static_cast<int64_t>(std::min(request.patience_millis(), kLongest));
  }
  const Status status = locks->Lock(owner, nullptr,
                                    {.family = key.family(),
                                     .key = key.key(),
                                     .exclusive = request.exclusive(),
                                     .upgrade = request.upgrade()});
  if (status.IsTimedOut() && would_wait != nullptr && may_wait) {
    *would_wait = true;
    return Status::OK();
  }
  const auto may_keep = [&] {
    return clients_->MayKeepLock(client, request.owner(), owner.id, request.attempt());
  };
  if (status.ok() && !may_keep()) {
    locks->Unlock(owner.id, key.family(), key.key());
    return Status::TimedOut("the request was given up");
  }
  return status;
}

void ShardService::Unlock(Client client, LocalShard* shard, const LockRequest& request) {
  if (request.attempt() > 0) clients_->CancelAttempt(client, request.attempt());
  const TransactionID owner = clients_->FindLocker(client, request.owner(), *shard);
  if (owner == 0) return;
  for (const sharding::LockedKey& key : request.keys()) {
    shard->locks()->table()->Unlock(owner, key.family(), key.key());
  }
  if (request.all()) clients_->RemoveLocker(client, request.owner(), *shard);
}

void ShardService::AddLocks(Client client, const LocalShard& shard,
                            const sharding::BatchRequest& request, BatchPart* part) const {
  if (request.locks().empty()) return;
  part->lock_owner = clients_->FindLocker(client, request.lock_owner(), shard);
  for (const sharding::LockedKey& key : request.locks()) {
    part->locks.push_back({.family = key.family(), .key = key.key()});
  }
}

}  // namespace nacre
