#include "sharding/transactions/member_locks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sharding/local_shard.h"
#include "sharding/transactions/transaction_parts.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

/// A shard is waited at for so long, and then looked for again: views do not change under a wait.
constexpr std::chrono::milliseconds kSlice(500);

}  // namespace

// ---- Locks --------------------------------------------------------------------------------------

template <typename Work>
Status MemberLocks::AtShardOf(const Slice& key, const Work& work) const {
  return db_->WithView([&](const ShardedView& view) {
    return work(view.shards[view.map.Find(key)]->lock_participant());
  });
}

Status MemberLocks::Lock(const LockOwner& owner, LockWaiter* /*waiter*/, const LockWanted& wanted) {
  std::optional<Deadline> deadline;
  if (owner.timeout_ms >= 0) {
    deadline = Deadline::After(db_->clock_, std::chrono::milliseconds(owner.timeout_ms));
  }
  for (;;) {
    LockOwner now = owner;
    const auto left =
        deadline.has_value() ? deadline->Remaining() : std::chrono::nanoseconds(kSlice);
    const auto slice = std::min<std::chrono::nanoseconds>(left, kSlice);
    now.timeout_ms = std::chrono::ceil<std::chrono::milliseconds>(slice).count();
    Status status =
        AtShardOf(wanted.key, [&](LockParticipant* shard) { return shard->Lock(now, wanted); });
    const bool again = status.IsTimedOut() && !(deadline.has_value() && deadline->Expired());
    if (!again) return status;
  }
}

void MemberLocks::Unlock(TransactionID owner, uint32_t family, const Slice& key) noexcept {
  CatchAll([&] {
    return AtShardOf(key, [&](LockParticipant* shard) {
      return shard->Unlock(owner, {{.family = family, .key = key.ToString()}}, /*all=*/false);
    });
  }).IgnoreError();
}

void MemberLocks::UnlockAll(TransactionID owner, const KeyTracker& keys) noexcept {
  CatchAll([&] {
    const std::shared_ptr<const ShardedView> view = db_->views_->latest();
    std::map<size_t, std::vector<KeyLock>> by_shard;
    keys.ForEach([&](uint32_t family, const std::string& key, const TrackedKey&) {
      by_shard[view->map.Find(key)].push_back({.family = family, .key = key});
    });
    for (const auto& [index, locks] : by_shard) {
      // Where the shard has moved there is no lock any more.
      view->shards[index]->lock_participant()->Unlock(owner, locks, /*all=*/true).IgnoreError();
    }
    return Status::OK();
  }).IgnoreError();
}

void MemberLocks::Share(TransactionID owner, uint32_t family, const Slice& key) noexcept {
  CatchAll([&] {
    return AtShardOf(key, [&](LockParticipant* shard) {
      return shard->Share(owner, {.family = family, .key = key.ToString()});
    });
  }).IgnoreError();
}

template <typename Work>
void MemberLocks::ForEachTable(const Work& work) const {
  for (const auto& shard : db_->views_->latest()->shards) {
    if (shard->local() != nullptr) work(shard->local()->locks()->table());
  }
}

std::unordered_multimap<uint32_t, KeyLockInfo> MemberLocks::Locks() const {
  std::unordered_multimap<uint32_t, KeyLockInfo> all;
  ForEachTable([&](const LockManager* table) { all.merge(table->Locks()); });
  return all;
}

std::vector<DeadlockPath> MemberLocks::Deadlocks() const {
  std::vector<DeadlockPath> all;
  ForEachTable([&](const LockManager* table) {
    for (DeadlockPath& path : table->Deadlocks()) all.push_back(std::move(path));
  });
  return all;
}

void MemberLocks::SetDeadlocksRemembered(uint32_t count) {
  ForEachTable([count](LockManager* table) { table->SetDeadlocksRemembered(count); });
}

// ---- Below transactions -------------------------------------------------------------------------

Status MembersBelow::CheckUnwritten(uint32_t family, const Slice& key,
                                    const Snapshot& since) const {
  const auto& snapshot = static_cast<const ShardedSnapshot&>(since);
  const ShardedView& view = snapshot.view();
  const size_t index = view.map.Find(key);
  BatchPart part{.shard = index};
  part.checks.push_back(
      {.family = family, .key = key.ToString(), .since = snapshot.of_shard(index)});
  const Status status = view.shards[index]->participant()->WriteAlone(db_->NextBatch(), {}, part,
                                                                      db_->OperationDeadline());
  // The shard has moved, or was split or merged, and the snapshot is gone.
  return status.IsBusy() || status.IsFenced() || status.IsAborted() ? Written() : status;
}

Status MembersBelow::WriteLocked(const WriteOptions& options, TransactionID owner,
                                 const KeyTracker& locked, WriteBatch* updates) {
  db_->recent_.Drop();
  return db_->WithView([&](const ShardedView& view) -> Status {
    TransactionParts parts(&view);
    NACRE_RETURN_IF_ERROR(parts.AddUpdates(*updates));
    locked.ForEach([&](uint32_t family, const std::string& key, const TrackedKey&) {
      BatchPart* const part = parts.PartOf(view.map.Find(key));
      const bool local = view.shards[part->shard]->local() != nullptr;
      part->lock_owner = local ? LocalLocks::IdHere(owner) : owner;
      part->locks.push_back({.family = family, .key = key});
    });
    return parts.Write(options, db_->NextBatch(), db_->OperationDeadline());
  });
}

}  // namespace nacre
