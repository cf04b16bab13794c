#include "server/cluster/loop_shards.h"

#include <utility>

namespace nacre::server {

Status LoopShards::Make(uint32_t id, Store* store, Shard** shard) {
  auto made = std::make_unique<Shard>();
  NACRE_RETURN_IF_ERROR(store->db()->NewAsyncDB(loop_, &made->async));
  made->id = id;
  made->slots = store->sections();
  made->access.store = store;
  made->access.loop = loop_;
  made->access.async = made->async.get();
  made->access.workers = workers_;
  *shard = made.get();
  shards_[id] = std::move(made);
  return Status::OK();
}

Status LoopShards::Add(uint32_t id, Store* store) {
  Shard* shard = nullptr;
  NACRE_RETURN_IF_ERROR(Make(id, store, &shard));
  by_first_slot_[shard->slots.first] = shard;
  return Status::OK();
}

Status LoopShards::SetReader(Store* store) {
  Shard* shard = nullptr;
  NACRE_RETURN_IF_ERROR(Make(kReader, store, &shard));
  shard->access.read.read_from_follower = true;
  return Status::OK();
}

void LoopShards::Remove(uint32_t id, std::function<void()> left) {
  const auto found = shards_.find(id);
  if (found == shards_.end()) return left();
  Shard* const shard = found->second.get();
  if (id != kReader) by_first_slot_.erase(shard->slots.first);
  shard->access.leaving = true;
  shard->left = [this, id, told = std::move(left)] {
    // Not from within what has used it last.
    loop_->Post([this, id, told] {
      shards_.erase(id);
      told();
    });
  };
  if (shard->uses == 0) shard->left();
}

LoopShards::Shard* LoopShards::Find(uint32_t slot) const {
  auto found = by_first_slot_.upper_bound(slot);
  if (found == by_first_slot_.begin()) return nullptr;
  Shard* const shard = (--found)->second;
  return shard->slots.Has(slot) ? shard : nullptr;
}

LoopShards::Shard* LoopShards::reader() const {
  const auto found = shards_.find(kReader);
  return found == shards_.end() || found->second->left != nullptr ? nullptr : found->second.get();
}

std::vector<LoopShards::Shard*> LoopShards::All() const {
  std::vector<Shard*> all;
  for (const auto& [first, shard] : by_first_slot_) all.push_back(shard);
  return all;
}

}  // namespace nacre::server
