#include "server/cluster/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "util/clock.h"
#include "util/log.h"

namespace nacre::server {
namespace {

/// What a shard's boundaries stand for; there may be none behind the last slot. False if they are
/// not slots'.
bool SlotsOf(const ShardInfo& shard, SlotRange* slots) {
  *slots = {0, kSlots};
  const auto take = [](const std::string& key, uint32_t* slot) {
    if (ParseSlotPrefix(key, slot)) return true;
    *slot = kSlots;
    return key.size() == SlotPrefix(0).size();
  };
  return (shard.begin.empty() || take(shard.begin, &slots->first)) &&
         (shard.last || take(shard.end, &slots->behind));
}

}  // namespace

std::string ClusterNode::Id() const { return fmt::format("{:040x}", member); }

Cluster::~Cluster() { Close().IgnoreError(); }

Status Cluster::Open(ShardedOptions options, const std::string& name, int shards) {
  log_ = options.info_log;
  // This outlives the keyspace.
  options.shard_observer = std::shared_ptr<ShardObserver>(std::shared_ptr<void>(), this);
  options.undivided_prefix_bytes = SlotPrefix(0).size();
  options.boundaries.clear();
  for (int i = 1; i < shards; ++i) {
    options.boundaries.push_back(
        SlotPrefix(kSlots * static_cast<uint32_t>(i) / static_cast<uint32_t>(shards)));
  }
  NACRE_RETURN_IF_ERROR(ShardedDB::Open(options, name, &db_));
  for (const ShardInfo& shard : db_->GetShards()) {
    SlotRange slots;
    if (SlotsOf(shard, &slots)) continue;
    return Status::InvalidArgument(
        fmt::format("keyspace {} has a shard that begins at '{}', which is no slot: it is none of "
                    "nacre-server's",
                    name, Slice(shard.begin).ToString(/*hex=*/true)));
  }
  opened_.store(db_.get(), std::memory_order_release);
  reader_ = Store::ToRead(db_.get());
  return AddTo([&](LoopShards* loop) { return loop->SetReader(reader_.get()); });
}

void Cluster::GiveAway(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kLook(10);
  const std::vector<ClusterNode> nodes = Nodes();
  const auto self = std::ranges::find_if(nodes, &ClusterNode::self);
  if (nodes.size() < 2 || self == nodes.end()) return;
  const Deadline deadline = Deadline::After(Clock::System(), patience);
  // If that fails, closing the shards lets the others take them.
  if (!db_->DrainMember(self->member, true).ok()) return;
  while (!deadline.Expired()) {
    const std::vector<ShardInfo> shards = db_->GetShards();
    if (std::ranges::none_of(shards, &ShardInfo::local)) return;
    Clock::System()->SleepFor(kLook);
  }
}

Status Cluster::Close() {
  opened_.store(nullptr, std::memory_order_release);
  if (db_ == nullptr || std::exchange(closed_, true)) return Status::OK();
  OnEachLoop([&](size_t loop, const Done& done) {
    loops_[loop].shards->Remove(LoopShards::kReader, done);
  });
  return db_->Close();
}

// ---- Who has what -------------------------------------------------------------------------------

std::vector<ClusterNode> Cluster::Nodes() const {
  ShardedDB* const db = opened_.load(std::memory_order_acquire);
  if (db == nullptr) return {};
  std::vector<ShardMember> members;
  // What was known before is answered if the coordinator does not answer.
  db->GetMembers(&members).IgnoreError();
  std::vector<ClusterNode> nodes;
  for (const ShardMember& member : members) {
    if (member.client_address.empty()) continue;  // It is no server.
    nodes.push_back({.member = member.id, .address = member.client_address, .self = member.self});
  }
  return nodes;
}

std::vector<SlotOwner> Cluster::Owners() const {
  ShardedDB* const db = opened_.load(std::memory_order_acquire);
  if (db == nullptr) return {};
  const std::vector<ClusterNode> nodes = Nodes();
  std::vector<SlotOwner> owners;
  for (const ShardInfo& shard : db->GetShards()) {
    SlotOwner owner;
    SlotsOf(shard, &owner.slots);
    const auto found = std::ranges::find(nodes, shard.owner, &ClusterNode::member);
    if (found != nodes.end()) owner.node = *found;
    owners.push_back(std::move(owner));
  }
  return owners;
}

ClusterNode Cluster::OwnerOf(uint32_t slot) const {
  for (SlotOwner& owner : Owners()) {
    if (owner.slots.Has(slot)) return std::move(owner.node);
  }
  return {};
}

uint64_t Cluster::Epoch() const {
  ShardedDB* const db = opened_.load(std::memory_order_acquire);
  if (db == nullptr) return 0;
  uint64_t epoch = 0;
  for (const ShardInfo& shard : db->GetShards()) epoch += shard.epoch;
  return epoch;
}

Status Cluster::Ask(int64_t server, const Slice& request, std::chrono::milliseconds timeout,
                    std::string* answer) const {
  ShardedDB* const db = opened_.load(std::memory_order_acquire);
  if (db == nullptr) return Status::Unavailable("this server is not a part of the cluster");
  return db->AskMember(server, request, timeout, answer);
}

// ---- Shards that come and go --------------------------------------------------------------------

void Cluster::OnEachLoop(const std::function<void(size_t loop, const Done& done)>& work) const {
  Mutex mutex;
  CondVar changed(&mutex);
  size_t under_way = loops_.size();
  const Done done = [&] {
    const MutexLock lock(&mutex);
    if (--under_way == 0) changed.SignalAll();
  };
  for (size_t i = 0; i < loops_.size(); ++i) {
    loops_[i].loop->Post([&, i] { work(i, done); });
  }
  const MutexLock lock(&mutex);
  while (under_way > 0) changed.Wait();
}

Status Cluster::AddTo(const std::function<Status(LoopShards* loop)>& add) const {
  Mutex mutex;
  Status status;
  OnEachLoop([&](size_t loop, const Done& done) {
    const Status added = add(loops_[loop].shards);
    {
      const MutexLock lock(&mutex);
      if (status.ok()) status = added;
    }
    done();
  });
  return status;
}

void Cluster::OnShardServed(const ShardInfo& shard, DB* db) {
  SlotRange slots;
  // Open will refuse a keyspace without slots.
  if (!SlotsOf(shard, &slots) || slots.size() == 0) return;
  std::unique_ptr<Store> store;
  Status status = Store::Serve(db, slots, &store);
  if (status.ok()) {
    status = AddTo([&](LoopShards* loop) { return loop->Add(shard.id, store.get()); });
  }
  const MutexLock lock(&mutex_);
  stores_[shard.id] = std::move(store);
  if (status.ok()) return;
  Log(db->GetDBOptions().info_log, LogLevel::kError, "slots {} to {} cannot be served: {}",
      slots.first, slots.behind - 1, status.ToString());
}

void Cluster::OnShardLeaving(uint32_t shard) {
  std::unique_ptr<Store> store;
  {
    const MutexLock lock(&mutex_);
    const auto found = stores_.find(shard);
    if (found == stores_.end()) return;
    store = std::move(found->second);
    stores_.erase(found);
  }
  if (store == nullptr) return;
  const SlotRange slots = store->sections();
  OnEachLoop([&](size_t loop, const Done& done) {
    loops_[loop].shards->Remove(shard, done);
    leaving_(loop, slots);
  });
  // What was under way may have begun to watch keys, or to listen to channels.
  OnEachLoop([&](size_t loop, const Done& done) {
    leaving_(loop, slots);
    done();
  });
}

uint64_t Cluster::OperationsOn(uint32_t shard) {
  const MutexLock lock(&mutex_);
  const auto found = stores_.find(shard);
  return found == stores_.end() || found->second == nullptr ? 0 : found->second->commands();
}

}  // namespace nacre::server
