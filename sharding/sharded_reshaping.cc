// Splits and merges of shards, and when they take place by themselves. With a coordinator the
// member that leads does them.

#include <string>
#include <vector>

#include "db/copy/middle_key.h"
#include "sharding/balance/balance_options.h"
#include "sharding/remote/member_codec.h"
#include "sharding/reshaping/split_point.h"
#include "sharding/sharded_db_impl.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

Status NoSuchShard(uint32_t shard) {
  return Status::InvalidArgument("there is no shard " + std::to_string(shard));
}

}  // namespace

Status ShardedDBImpl::SplitShard(uint32_t shard, const Slice& key) {
  const std::string at = key.ToString();
  const size_t undivided = opener_->options().undivided_prefix_bytes;
  NACRE_RETURN_IF_ERROR(CheckUndivided(undivided, at));
  if (member_ != nullptr) {
    NACRE_RETURN_IF_ERROR(member_->AskLeader(SplitRequest(shard, at)));
    return AwaitReshaped({shard}, at);
  }
  return CatchAll([&]() -> Status {
    MutexLock lock(&change_mutex_);
    std::string middle = at;
    if (middle.empty()) {
      const auto view = views_->latest();
      Shard* const split = view->Find(shard);
      if (split == nullptr) return NoSuchShard(shard);
      NACRE_RETURN_IF_ERROR(FindMiddleKey(split->local()->engine(), &middle));
    }
    return reshaping_.Run([&](ShardMap* map, ShardMap::Reshaping* reshaping) -> Status {
      if (at.empty()) NACRE_RETURN_IF_ERROR(MoveToUndivided(*map, shard, undivided, &middle));
      return map->BeginSplit(shard, middle, reshaping);
    });
  });
}

Status ShardedDBImpl::MergeShards(uint32_t low, uint32_t high) {
  if (member_ != nullptr) {
    std::string begin;
    {
      const auto view = views_->latest();
      const size_t index = view->map.IndexOf(high);
      if (index < view->map.size()) begin = view->map.shards()[index].begin;
    }
    NACRE_RETURN_IF_ERROR(member_->AskLeader(MergeRequest(low, high)));
    return AwaitReshaped({low, high}, begin);
  }
  return CatchAll([&]() -> Status {
    MutexLock lock(&change_mutex_);
    return reshaping_.Run([&](ShardMap* map, ShardMap::Reshaping* reshaping) {
      return map->BeginMerge(low, high, reshaping);
    });
  });
}

Status ShardedDBImpl::SetBalance(const std::unordered_map<std::string, std::string>& changes) {
  const BalanceChanges ordered(changes.begin(), changes.end());
  if (member_ != nullptr) return member_->AskLeader(BalanceRequest(ordered));
  return CatchAll([&]() -> Status {
    MutexLock lock(&change_mutex_);
    ShardMap changed = views_->latest()->map;
    ShardMap::Balance balance = changed.balance();
    NACRE_RETURN_IF_ERROR(ChangeBalance(ordered, &balance));
    changed.SetBalance(balance);
    NACRE_RETURN_IF_ERROR(opener_->SaveMap(changed));
    views_->PublishMap(changed);
    return Status::OK();
  });
}

std::unordered_map<std::string, std::string> ShardedDBImpl::GetBalance() const {
  return TextsOf(views_->latest()->map.balance());
}

Status ShardedDBImpl::AwaitReshaped(const std::vector<uint32_t>& gone, const std::string& key) {
  return WithView([&](const ShardedView& view) -> Status {
    for (const uint32_t id : gone) {
      if (view.Find(id) != nullptr) return Status::Fenced("the map is an old one");
    }
    Shard* const shard = view.shards[view.map.Find(key)].get();
    PinnableSlice value;
    const auto look = [&] { return shard->db()->Get({}, nullptr, key, &value); };
    const Status status = shard->local() == nullptr ? look() : shard->local()->Do(look);
    return status.IsNotFound() ? Status::OK() : status;
  });
}

}  // namespace nacre
