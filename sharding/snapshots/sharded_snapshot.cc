#include "sharding/snapshots/sharded_snapshot.h"

#include <map>
#include <vector>

#include "sharding/local_shard.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

/// What is asked of one owner.
struct Share {
  ShardOwner* owner = nullptr;
  ShardOwner::Token token = 0;
  std::vector<size_t> places;
  std::vector<Shard*> shards;
};

/// By the owners' ids, in whose order gates are closed.
using Shares = std::map<int64_t, Share>;

Status TakeAll(const std::shared_ptr<const ShardedView>& view, Deadline deadline, Shares* shares,
               std::shared_ptr<ShardedSnapshot>* snapshot) {
  for (auto& [id, share] : *shares) {
    NACRE_RETURN_IF_ERROR(share.owner->CloseGate(deadline, &share.token));
  }
  for (const auto& [id, share] : *shares) {
    NACRE_RETURN_IF_ERROR(share.owner->StopOperations(share.token));
  }
  const auto taken = std::make_shared<ShardedSnapshot>(view);
  for (const auto& [id, share] : *shares) {
    std::vector<const Snapshot*> of_shards;
    NACRE_RETURN_IF_ERROR(share.owner->TakeSnapshots(share.token, share.shards, &of_shards));
    for (size_t i = 0; i < of_shards.size(); ++i) taken->Set(share.places[i], of_shards[i]);
  }
  *snapshot = taken;
  return Status::OK();
}

/// Takes one without stopping anything, if all shards are for good this process's, and nothing
/// happens to be written: see SnapshotGate.
bool TakeQuietly(const std::shared_ptr<const ShardedView>& view,
                 std::shared_ptr<ShardedSnapshot>* snapshot) {
  for (const auto& shard : view->shards) {
    if (shard->local() == nullptr || shard->local()->may_move()) return false;
  }
  const SnapshotGate& gate = *view->shards.front()->local()->local_owner()->gate();
  if (!gate.empty() || gate.taking()) return false;
  auto taken = std::make_shared<ShardedSnapshot>(view);
  for (size_t i = 0; i < view->shards.size(); ++i) {
    taken->Set(i, view->shards[i]->db()->GetSnapshot());
    NACRE_POINT("keyspace.shard-in-snapshot");
  }
  if (!gate.empty()) return false;
  for (size_t i = 0; i < view->shards.size(); ++i) {
    const uint64_t latest = view->shards[i]->db()->GetLatestSequenceNumber();
    if (latest != taken->of_shard(i)->GetSequenceNumber() &&
        !NACRE_PLANTED_BUG("snapshot.not-looked-at-again")) {
      return false;
    }
  }
  *snapshot = std::move(taken);
  return true;
}

}  // namespace

Status TakeSharedSnapshot(const std::shared_ptr<const ShardedView>& view, Deadline deadline,
                          std::shared_ptr<ShardedSnapshot>* snapshot) {
  // The other bugs are in what follows.
  const bool quietly = !NACRE_PLANTED_BUG("snapshot.of-several-moments") &&
                       !NACRE_PLANTED_BUG("snapshot.taken-while-operations-begin");
  if (quietly && TakeQuietly(view, snapshot)) return Status::OK();
  Shares shares;
  for (size_t i = 0; i < view->shards.size(); ++i) {
    Shard* const shard = view->shards[i].get();
    Share& share = shares[shard->owner()->id()];
    if (share.owner != nullptr && share.owner != shard->owner()) {
      return Status::Fenced("a shard is not open here yet");
    }
    share.owner = shard->owner();
    share.places.push_back(i);
    share.shards.push_back(shard);
  }
  const Status status = TakeAll(view, deadline, &shares, snapshot);
  if (!status.ok()) {
    for (const auto& [id, share] : shares) share.owner->OpenGate(share.token);
  }
  return status;
}

}  // namespace nacre
