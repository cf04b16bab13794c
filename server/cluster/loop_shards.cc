#include "server/cluster/loop_shards.h"

#include <utility>

namespace nacre::server {

Status LoopShards::Add(uint32_t id, Store* store) {
  auto shard = std::make_unique<Shard>();
  NACRE_RETURN_IF_ERROR(store->db()->NewAsyncDB(loop_, &shard->async));
  shard->id = id;
  shard->slots = store->sections();
  shard->access = {store, loop_, shard->async.get(), workers_};
  by_first_slot_[shard->slots.first] = shard.get();
  shards_[id] = std::move(shard);
  return Status::OK();
}

void LoopShards::Remove(uint32_t id, std::function<void()> left) {
  const auto found = shards_.find(id);
  if (found == shards_.end()) return left();
  Shard* const shard = found->second.get();
  by_first_slot_.erase(shard->slots.first);
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

std::vector<LoopShards::Shard*> LoopShards::All() const {
  std::vector<Shard*> all;
  for (const auto& [first, shard] : by_first_slot_) all.push_back(shard);
  return all;
}

}  // namespace nacre::server
