#include "sharding/sharded_snapshot.h"

#include <map>
#include <vector>

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

}  // namespace

Status TakeSharedSnapshot(const std::shared_ptr<const ShardedView>& view, Deadline deadline,
                          std::shared_ptr<ShardedSnapshot>* snapshot) {
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
