#include "server/session/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <map>
#include <optional>
#include <utility>

#include "server/session/execute.h"
#include "server/session/forwarding.h"
#include "server/session/server_state.h"
#include "util/clock.h"

namespace nacre::server {
namespace {

/// How long a command waits for a server to have its slot.
constexpr std::chrono::milliseconds kPatience{3000};
constexpr std::chrono::milliseconds kLook{2};

constexpr const char* kCrossSlot = "CROSSSLOT Keys in request don't hash to the same slot";

/// The slots of a call's keys. Those of EXEC are of what was queued, and of what is watched.
struct KeySlots {
  std::optional<uint32_t> slot{};  ///< None: it names no keys.
  bool several = false;

  void Add(std::string_view key) {
    const uint32_t its = SlotOfKey(key);
    several = several || (slot.has_value() && *slot != its);
    slot = its;
  }
};

void AddSlots(const Call& call, KeySlots* slots) {
  if ((call.command->flags & kShardChannels) != 0) {
    const bool all = call.command->arity < 0;
    for (size_t i = 1; i < (all ? call.argc() : 2); ++i) slots->Add(call.arg(i));
    return;
  }
  for (const KeyRef& key : KeysOf(call)) slots->Add(key.key);
}

KeySlots SlotsOf(const Call& call) {
  KeySlots slots;
  AddSlots(call, &slots);
  // One that is refused in any case is so wherever its keys are.
  if (call.client->in_multi && !call.client->multi_failed &&
      std::string_view(call.command->name) == "exec") {
    for (const QueuedCommand& queued : call.client->queued) {
      Call part = call.NewPart();
      part.command = queued.command;
      part.request.args = queued.request.args;
      AddSlots(part, &slots);
    }
    if (call.client->watch != nullptr) {
      for (const WatchState::Key& key : call.client->watch->keys) slots.Add(key.key);
    }
  }
  return slots;
}

bool IsOnAllKeys(const Call& call) {
  return (call.command->flags & (kWholeKeySpace | kAllLocks)) != 0;
}

/// Waits until the slot is served here, or the deadline. Answers an error, and null, if it is
/// another server's, or none has it for long.
Task<LoopShards::Shard*> AwaitShard(Call* call, uint32_t slot, Deadline deadline) {
  for (;;) {
    LoopShards::Shard* const shard = call->loop->shards.Find(slot);
    if (shard != nullptr) co_return shard;
    if (call->server->cluster->OwnerOf(slot).elsewhere() || deadline.Expired() ||
        call->client->ended) {
      call->reply.Error(RedirectionOf(*call, slot));
      co_return nullptr;
    }
    co_await Sleep(&call->loop->loop, kLook);
  }
}

/// Where a call may read keys that are not served here; null if it has to go to their server.
LoopShards::Shard* ReaderOf(const Call& call) {
  const bool reads = (call.command->flags & kReads) != 0;
  return reads && call.client->reads_elsewhere ? call.loop->shards.reader() : nullptr;
}

/// Calls of one shard.
struct Group {
  LoopShards::Use use;
  std::vector<Call*> calls;
};

Task<void> ExecuteGroup(std::vector<Call*> calls, LoopShards::Shard* shard) {
  for (Call* const call : calls) call->access = &shard->access;
  shard->access.store->CountCommands(calls.size());
  co_await Execute(calls);
  for (Call* const call : calls) call->access = &call->loop->access;
}

/// Tasks that run at once, on one loop, and what waits for all of them.
class Join {
 public:
  explicit Join(EventLoop* loop) : loop_(loop) {}

  /// What the task uses stays until this has been awaited.
  void Begin(Task<void> task) {
    ++under_way_;
    loop_->Spawn(Run(std::move(task), this));
  }

  bool await_ready() const noexcept { return under_way_ == 0; }
  void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }
  void await_resume() const noexcept {}

 private:
  static Task<void> Run(Task<void> task, Join* join) {
    co_await std::move(task);
    if (--join->under_way_ == 0 && join->waiter_) join->loop_->Schedule(join->waiter_);
  }

  EventLoop* const loop_;
  size_t under_way_ = 0;
  std::coroutine_handle<> waiter_{};
};

/// A call on a slot that was not served here.
struct LateCall {
  Call* call = nullptr;
  uint32_t slot = 0;
};

Task<void> ExecuteLate(Call* call, uint32_t slot, Deadline deadline) {
  LoopShards::Shard* const shard = co_await AwaitShard(call, slot, deadline);
  if (shard == nullptr) co_return;
  const LoopShards::Use use(shard);
  std::vector<Call*> calls{call};
  co_await ExecuteGroup(std::move(calls), shard);
}

/// Has the servers run the calls that have their slots now, each server those of its own, and all
/// servers at once. What is left in `*late` was not run.
Task<void> ForwardOnce(std::vector<LateCall>* late) {
  const Call& first = *late->front().call;
  const std::vector<SlotOwner> owners = first.server->cluster->Owners();
  std::map<int64_t, std::vector<Call*>> by_server;
  Join join(&first.loop->loop);
  for (const LateCall& each : *late) {
    each.call->elsewhere = true;
    const auto owner = std::ranges::find_if(
        owners, [&](const SlotOwner& range) { return range.slots.Has(each.slot); });
    if (owner == owners.end() || !owner->node.elsewhere()) continue;
    if (const std::string error = RefusalToForward(*each.call, each.slot); !error.empty()) {
      each.call->reply.Error(error);
      each.call->elsewhere = false;
    } else if (each.call->client->watch != nullptr && each.call->client->in_multi) {
      // It watches keys of a slot that was here, and has gone.
      each.call->reply.NullArray();
      each.call->elsewhere = false;
      EndTransaction(each.call);
    } else {
      by_server[owner->node.member].push_back(each.call);
    }
  }
  for (auto& [server, calls] : by_server) join.Begin(Forward(server, std::move(calls)));
  co_await join;
  std::erase_if(*late, [](const LateCall& each) { return !each.call->elsewhere; });
}

/// Runs calls of a client that knows no clusters wherever their keys are, or come to be.
Task<void> ExecuteAnywhere(std::vector<LateCall> late, Deadline deadline) {
  while (!late.empty()) {
    co_await ForwardOnce(&late);
    // Calls on one slot keep their order: at any moment it is here for all of them, or for none.
    const bool over = deadline.Expired();
    std::vector<LateCall> here;
    std::vector<LateCall> left;
    for (const LateCall& each : late) {
      each.call->elsewhere = false;
      const bool found = each.call->loop->shards.Find(each.slot) != nullptr;
      (over || found || each.call->client->ended ? here : left).push_back(each);
    }
    for (const LateCall& each : here) co_await ExecuteLate(each.call, each.slot, deadline);
    late = std::move(left);
    if (!late.empty()) co_await Sleep(&late.front().call->loop->loop, kLook);
  }
}

Task<void> ExecuteOnAllShards(Call* call) {
  std::vector<LoopShards::Use> uses;
  std::vector<const StoreAccess*> stores;
  for (LoopShards::Shard* const shard : call->loop->shards.All()) {
    uses.emplace_back(shard);
    stores.push_back(&shard->access);
  }
  co_await ExecuteOnAll(call, stores);
}

Task<void> ExecuteInCluster(std::vector<Call*> calls) {
  Call* const first = calls.front();
  std::vector<Group> groups;
  std::vector<LateCall> late;
  std::vector<Call*> keyless;
  for (Call* const call : calls) {
    const KeySlots slots = SlotsOf(*call);
    if (slots.several) {
      call->reply.Error(kCrossSlot);
      continue;
    }
    if (!slots.slot.has_value()) {
      keyless.push_back(call);
      continue;
    }
    LoopShards::Shard* shard = call->loop->shards.Find(*slots.slot);
    if (shard == nullptr) shard = ReaderOf(*call);
    if (shard == nullptr) {
      late.push_back({.call = call, .slot = *slots.slot});
      continue;
    }
    const auto its = std::ranges::find_if(
        groups, [&](const Group& group) { return group.use.shard() == shard; });
    if (its != groups.end()) {
      its->calls.push_back(call);
    } else {
      groups.push_back({LoopShards::Use(shard), {call}});
    }
  }
  // Later commands of the client begin when the locks of all of these are held: if they are not one
  // unit of work, when they have ended.
  first->lets_next_begin = groups.size() + late.size() + keyless.size() == 1;
  Join join(&first->loop->loop);
  for (const Group& group : groups) join.Begin(ExecuteGroup(group.calls, group.use.shard()));
  co_await join;
  // Nothing keeps a shard from leaving while others are waited for.
  groups.clear();
  const Deadline deadline = Deadline::After(first->loop->loop.clock(), kPatience);
  const Client::Origin origin = first->client->origin;
  if (origin == Client::Origin::kProxied) {
    co_await ExecuteAnywhere(std::move(late), deadline);
  } else {
    for (const LateCall& each : late) {
      // The server that asks for it looks for another one, and keeps the order of what it asks for.
      each.call->elsewhere = origin == Client::Origin::kRelayed;
      if (!each.call->elsewhere) co_await ExecuteLate(each.call, each.slot, deadline);
    }
  }
  for (Call* const call : keyless) {
    if (IsOnAllKeys(*call)) {
      co_await ExecuteOnAllShards(call);
    } else {
      std::vector<Call*> one{call};
      co_await Execute(std::move(one));
    }
  }
}

}  // namespace

Task<void> ExecuteWhereTheKeysAre(std::vector<Call*> calls) {
  return calls.front()->server->cluster == nullptr ? Execute(std::move(calls))
                                                   : ExecuteInCluster(std::move(calls));
}

std::string RefusalInCluster(const Call& call) {
  if (call.server->cluster == nullptr) return {};
  const bool on_all = IsOnAllKeys(call) && call.client->in_multi;
  if (on_all || (call.command->flags & kNotInCluster) != 0) {
    return fmt::format("ERR '{}' is not allowed{} in a cluster", call.command->name,
                       on_all ? " within MULTI" : "");
  }
  const bool channels = (call.command->flags & kShardChannels) != 0;
  // Other commands wait for their slot when they are run.
  if (!channels && !call.client->in_multi) return {};
  const KeySlots slots = SlotsOf(call);
  if (slots.several) return kCrossSlot;
  if (!slots.slot.has_value() || call.loop->shards.Find(*slots.slot) != nullptr) return {};
  if (call.client->origin == Client::Origin::kProxied) {
    const bool queued = call.client->in_multi && !channels;
    return queued ? std::string() : RefusalToForward(call, *slots.slot);
  }
  return channels || call.server->cluster->OwnerOf(*slots.slot).elsewhere()
             ? RedirectionOf(call, *slots.slot)
             : std::string();
}

bool HasKeysOf(const Call& call, const Call& part) {
  if (call.server->cluster == nullptr) return true;
  if (IsOnAllKeys(part)) return false;
  const std::vector<KeyRef> keys = KeysOf(part);
  return std::ranges::all_of(keys, [&](const KeyRef& key) {
    return call.access->store != nullptr && call.access->store->sections().Has(SlotOfKey(key.key));
  });
}

std::string RedirectionOf(const Call& call, uint32_t slot) {
  const ClusterNode owner = call.server->cluster->OwnerOf(slot);
  if (owner.address.empty()) return "CLUSTERDOWN Hash slot not served";
  if (owner.self) return "TRYAGAIN the slot is on its way to another server";
  if (call.client->origin == Client::Origin::kProxied) {
    return fmt::format("CLUSTERDOWN slot {} is another server's: {}", slot, owner.address);
  }
  return fmt::format("MOVED {} {}", slot, owner.address);
}

}  // namespace nacre::server
