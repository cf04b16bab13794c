#include "sharding/transactions/local_locks.h"

#include "util/planted_bug.h"

namespace nacre {

// Locks are looked at when their transaction commits, so an expired one may just lose them.
LocalLocks::LocalLocks(Clock* clock)
    : table_(TransactionDBOptions(), clock, [](TransactionID) { return true; }) {}

Status LocalLocks::Lock(const LockOwner& owner, const LockWanted& wanted) {
  LockOwner here = owner;
  here.id = IdHere(owner.id);
  return table_.Lock(here, nullptr, wanted);
}

Status LocalLocks::Share(TransactionID owner, const KeyLock& key) {
  table_.Share(IdHere(owner), key.family, key.key);
  return Status::OK();
}

Status LocalLocks::Unlock(TransactionID owner, const std::vector<KeyLock>& keys, bool /*all*/) {
  for (const KeyLock& each : keys) table_.Unlock(IdHere(owner), each.family, each.key);
  return Status::OK();
}

Status LocalLocks::Check(const BatchPart& part) const {
  if (NACRE_PLANTED_BUG("locks.lost-ones-are-not-missed")) return Status::OK();
  for (const KeyLock& each : part.locks) {
    if (!table_.Holds(part.lock_owner, each.family, each.key)) {
      return Status::Busy("commit: a lock was lost, as its shard has moved or it had expired");
    }
  }
  return Status::OK();
}

}  // namespace nacre
