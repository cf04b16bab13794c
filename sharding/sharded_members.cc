#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "pool/pool_client.h"
#include "pool/pool_impl.h"
#include "sharding/members/keyspace_member.h"
#include "sharding/members/shared_families.h"
#include "sharding/remote/member_codec.h"
#include "sharding/sharded_db_impl.h"
#include "util/named_point.h"

namespace nacre {
namespace {

Status OnlyWithACoordinator() {
  return Status::NotSupported("the keyspace has no coordinator: this process owns all its shards");
}

/// Makes the keyspace in the pool, with all families that are named, unless it is there; and has it
/// be one with a coordinator. `*map` is what the pool has of it.
Status MakeSharedKeyspace(const ShardedOptions& options, const std::string& name,
                          const std::vector<ColumnFamilyDescriptor>& families, ShardMap* map) {
  const auto owner = std::make_shared<LocalOwner>(0);
  {
    ShardOpener opener(options, name, families, owner);
    NACRE_RETURN_IF_ERROR(opener.OpenMap(map));
    NACRE_RETURN_IF_ERROR(opener.CloseMap());
    if (map->shared()) return opener.CheckFamilies(*map);
  }
  // What an owner left is settled, and families that are missing are made.
  ShardedOptions alone = options;
  alone.coordinator.clear();
  alone.member_address.clear();
  std::vector<ColumnFamilyHandle*> handles;
  std::unique_ptr<ShardedDB> db;
  NACRE_RETURN_IF_ERROR(ShardedDB::Open(alone, name, families, &handles, &db));
  for (ColumnFamilyHandle* const handle : handles) {
    NACRE_RETURN_IF_ERROR(db->DestroyColumnFamilyHandle(handle));
  }
  NACRE_RETURN_IF_ERROR(db->Close());
  db.reset();
  NACRE_POINT("keyspace.made-alone");
  ShardOpener opener(options, name, families, owner);
  NACRE_RETURN_IF_ERROR(opener.OpenMap(map));
  map->SetShared();
  NACRE_RETURN_IF_ERROR(opener.SaveMap(*map));
  return opener.CloseMap();
}

}  // namespace

Status ShardedDBImpl::OpenAsMember() {
  views_->SetInFlux(true);
  const auto pool = std::dynamic_pointer_cast<pool::PoolImpl>(opener_->options().pool);
  if (pool == nullptr) return Status::InvalidArgument("Options::pool is none of Nacre's");
  const auto make = [this](ShardMap* map) {
    return MakeSharedKeyspace(opener_->options(), name_, opener_->families(), map);
  };
  NACRE_RETURN_IF_ERROR(KeyspaceMember::Open({.opener = opener_.get(),
                                              .owner = owner_,
                                              .views = views_,
                                              .threads = pool->client()->threads(),
                                              .clock = clock_,
                                              .security = pool->peer_security(),
                                              .make = make},
                                             &member_));
  // Ids of members are never used twice.
  batch_prefix_ = fmt::format("m{}", owner_->id());
  shared_families_ =
      std::make_unique<SharedFamilies>(SharedFamilies::Context{.member = member_.get(),
                                                               .opener = opener_.get(),
                                                               .views = views_,
                                                               .families = &families_,
                                                               .clock = clock_});
  return shared_families_->MakeMissing();
}

Status ShardedDBImpl::WithLaterViews(const std::function<Status(const ShardedView& view)>& work) {
  using std::chrono::microseconds;
  constexpr microseconds kPauseMin(100);
  constexpr microseconds kPauseMax(2000);
  const Deadline deadline = OperationDeadline();
  for (microseconds pause = kPauseMin;; pause = std::min(2 * pause, kPauseMax)) {
    clock_->SleepFor(pause);
    Status status;
    {
      const ShardedViews::Pin view(views_.get());
      status = work(*view);
    }
    if (!status.IsFenced()) return status;
    if (deadline.Expired()) {
      return Status::TimedOut("no member serves the shard: " + std::string(status.message()));
    }
  }
}

// ---- What is asked for --------------------------------------------------------------------------

Status ShardedDBImpl::GetMembers(std::vector<ShardMember>* members) const {
  members->clear();
  return member_ == nullptr ? OnlyWithACoordinator() : member_->GetMembers(members);
}

Status ShardedDBImpl::MoveShard(uint32_t shard, int64_t member) {
  if (member_ == nullptr) return OnlyWithACoordinator();
  NACRE_RETURN_IF_ERROR(member_->AskLeader(MoveRequest(shard, member)));
  // Until the next owner answers.
  return WithView([&](const ShardedView& view) -> Status {
    const size_t index = view.map.IndexOf(shard);
    if (index == view.map.size()) return Status::OK();
    if (view.map.shards()[index].owner != member) return Status::Fenced("the map is an old one");
    Shard* const moved = view.shards[index].get();
    PinnableSlice value;
    const auto look = [&] { return moved->db()->Get({}, nullptr, Slice(), &value); };
    const Status status = moved->local() == nullptr ? look() : moved->local()->Do(look);
    return status.IsNotFound() ? Status::OK() : status;
  });
}

Status ShardedDBImpl::DrainMember(int64_t member, bool drain) {
  return member_ == nullptr ? OnlyWithACoordinator()
                            : member_->AskLeader(DrainRequest(member, drain));
}

Status ShardedDBImpl::AskMember(int64_t member, const Slice& request,
                                std::chrono::milliseconds timeout, std::string* answer) {
  return member_ == nullptr ? OnlyWithACoordinator()
                            : member_->Ask(member, request, timeout, answer);
}

}  // namespace nacre
