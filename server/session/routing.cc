#include "server/session/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <optional>
#include <utility>

#include "server/session/execute.h"
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
  if (call.client->in_multi && std::string_view(call.command->name) == "exec") {
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
      call->reply.Error(RedirectionOf(*call->server, slot));
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

  /// Begins the group, which stays until this has been awaited.
  void Begin(const Group& group) {
    ++under_way_;
    loop_->Spawn(Run(group, this));
  }

  bool await_ready() const noexcept { return under_way_ == 0; }
  void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }
  void await_resume() const noexcept {}

 private:
  static Task<void> Run(const Group& group, Join* join) {
    co_await ExecuteGroup(group.calls, group.use.shard());
    if (--join->under_way_ == 0 && join->waiter_) join->loop_->Schedule(join->waiter_);
  }

  EventLoop* const loop_;
  size_t under_way_ = 0;
  std::coroutine_handle<> waiter_{};
};

Task<void> ExecuteLate(Call* call, uint32_t slot, Deadline deadline) {
  LoopShards::Shard* const shard = co_await AwaitShard(call, slot, deadline);
  if (shard == nullptr) co_return;
  const LoopShards::Use use(shard);
  std::vector<Call*> calls{call};
  co_await ExecuteGroup(std::move(calls), shard);
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
  std::vector<std::pair<Call*, uint32_t>> late;
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
      late.emplace_back(call, *slots.slot);
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
  for (const Group& group : groups) join.Begin(group);
  co_await join;
  // Nothing keeps a shard from leaving while others are waited for.
  groups.clear();
  const Deadline deadline = Deadline::After(first->loop->loop.clock(), kPatience);
  for (const auto& [call, slot] : late) co_await ExecuteLate(call, slot, deadline);
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
  return channels || call.server->cluster->OwnerOf(*slots.slot).elsewhere()
             ? RedirectionOf(*call.server, *slots.slot)
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

std::string RedirectionOf(const ServerState& server, uint32_t slot) {
  const ClusterNode owner = server.cluster->OwnerOf(slot);
  if (owner.address.empty()) return "CLUSTERDOWN Hash slot not served";
  if (owner.self) return "TRYAGAIN the slot is on its way to another server";
  return fmt::format("MOVED {} {}", slot, owner.address);
}

}  // namespace nacre::server
