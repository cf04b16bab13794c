#include "sharding/members/keyspace_leader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sharding/remote/member_codec.h"
#include "sharding/remote/member_request.pb.h"
#include "sharding/reshaping/split_point.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using Kind = Balancer::Decision::Kind;

constexpr milliseconds kLoadsEvery{1000};
constexpr milliseconds kLoadsPatience{500};
constexpr milliseconds kWholeEvery{50};
constexpr milliseconds kSaveAgain{200};
/// Another member may have taken the map in the pool.
constexpr milliseconds kLookAfterPool{1000};
/// A member that has just joined is known here a moment later.
constexpr milliseconds kNewsPatience{500};
constexpr milliseconds kNewsEvery{5};

/// The living owner of shards that are made of the same ones as this one, and are not whole: one
/// member makes all of them.
std::optional<int64_t> OwnerOfSiblings(const ShardMap& map, size_t index,
                                       const KeyspaceState& state) {
  const std::vector<uint32_t>& sources = map.shards()[index].sources;
  for (const ShardMap::Shard& shard : map.shards()) {
    if (sources.empty() || shard.sources != sources) continue;
    if (state.Find(shard.owner) != nullptr) return shard.owner;
  }
  return std::nullopt;
}

Status NotLeading() { return Status::TryAgain("this member does not lead the keyspace"); }

}  // namespace

KeyspaceLeader::KeyspaceLeader(Context context)
    : context_(std::move(context)),
      pool_map_(context_.opener),
      executor_(context_.threads->NewExecutor(TaskThreads::kUnbounded, "nacre-leader")) {}

// ---- The map ------------------------------------------------------------------------------------

Status KeyspaceLeader::Change(const std::function<Status(ShardMap* map)>& change) {
  const Deadline deadline = Deadline::After(context_.clock, Membership::kPatience);
  for (;;) {
    std::string bytes;
    int64_t changed = 0;
    NACRE_RETURN_IF_ERROR(context_.membership->ReadMap(deadline, &bytes, &changed));
    if (changed == 0) return Status::TryAgain("the keyspace has not been made yet");
    ShardMap map;
    NACRE_RETURN_IF_ERROR(Parse(bytes, &map));
    const uint64_t version = map.version();
    NACRE_RETURN_IF_ERROR(change(&map));
    if (map.version() == version) return Status::OK();
    bool done = false;
    NACRE_RETURN_IF_ERROR(
        context_.membership->ChangeMap(changed, map.Serialize(), deadline, &done));
    if (done) return Status::OK();
    if (!context_.membership->leads()) return NotLeading();
    if (deadline.Expired()) return Status::TimedOut("the map of the keyspace changes too often");
  }
}

Status KeyspaceLeader::MakeMap() {
  ShardMap map;
  NACRE_RETURN_IF_ERROR(context_.make(&map));
  NACRE_POINT("keyspace.made-in-the-pool");
  // It may lead no more: then the next leader finds what was made.
  bool done = false;
  NACRE_RETURN_IF_ERROR(context_.membership->ChangeMap(
      0, map.Serialize(), Deadline::After(context_.clock, Membership::kPatience), &done));
  if (done) {
    Log(context_.log, LogLevel::kInfo, "keyspace {}: its map is published, {} shards",
        context_.opener->name(), map.size());
  }
  return Status::OK();
}

// ---- By itself ----------------------------------------------------------------------------------

Status KeyspaceLeader::Round() {
  if (!context_.membership->leads()) {
    looked_nanos_ = 0;
    pool_map_.Release();
    return Status::OK();
  }
  // Before the map: a move that ends in between is in that.
  std::set<uint32_t> under_way;
  {
    MutexLock lock(&mutex_);
    under_way = under_way_;
  }
  const std::shared_ptr<const KeyspaceState> state = context_.membership->state();
  if (state->map_changed == 0) return MakeMap();
  if (state->map_changed != map_changed_) {
    NACRE_RETURN_IF_ERROR(Parse(state->map, &map_));
    map_changed_ = state->map_changed;
  }
  for (const MemberInfo& member : state->members) addresses_[member.id] = member.address;
  GiveBack(*state);
  LookAtLoads(*state);
  LookForWhole(*state);
  LookAtReshapings();
  LookAfterPool();
  std::vector<int64_t> servers;
  for (const auto& [member, address] : state->Servers()) servers.push_back(member);
  CarryOut(balancer_.Decide({.map = map_,
                             .members = servers,
                             .loads = loads_,
                             .under_way = under_way,
                             .now_nanos = context_.clock->NowNanos()}));
  return Status::OK();
}

void KeyspaceLeader::GiveBack(const KeyspaceState& state) {
  std::map<int64_t, int64_t> came_back;
  for (const ShardMap::Shard& shard : map_.shards()) {
    if (shard.owner == 0 || state.Find(shard.owner) != nullptr) continue;
    const auto before = addresses_.find(shard.owner);
    if (before == addresses_.end() || before->second.empty()) continue;
    const auto now = std::ranges::find(state.members, before->second, &MemberInfo::address);
    if (now != state.members.end()) came_back[shard.owner] = now->id;
  }
  for (const auto& [before, now] : came_back) {
    const Status status = Change([&, from = before, to = now](ShardMap* changed) {
      for (size_t i = 0; i < changed->size(); ++i) {
        if (changed->shards()[i].owner == from) changed->SetOwner(i, to);
      }
      return Status::OK();
    });
    Log(context_.log, LogLevel::kInfo, "keyspace {}: member {} keeps its shards as member {}: {}",
        context_.opener->name(), before, now, status.ToString());
  }
}

void KeyspaceLeader::LookAtLoads(const KeyspaceState& state) {
  const uint64_t now = context_.clock->NowNanos();
  if (looked_nanos_ != 0 && now - looked_nanos_ < Nanos(kLoadsEvery)) return;
  looked_nanos_ = now;
  std::map<uint32_t, ShardLoad> loads;
  served_.clear();
  for (const auto& [member, address] : state.Servers()) {
    sharding::ControlReply reply;
    if (!LoadsOf(member, &reply).ok()) continue;
    for (const sharding::Load& load : reply.loads()) {
      const size_t index = map_.IndexOf(load.shard());
      if (index == map_.size() || map_.shards()[index].owner != member) continue;
      served_.insert(load.shard());
      loads[load.shard()] = rates_.Measure(load.shard(), member, load.bytes(), load.operations(),
                                           context_.clock->NowNanos());
    }
  }
  loads_ = std::move(loads);
  rates_.Keep(map_);
}

void KeyspaceLeader::LookForWhole(const KeyspaceState& state) {
  std::set<int64_t> owners;
  for (const ShardMap::Shard& shard : map_.shards()) {
    const bool asked = !shard.sources.empty() && !served_.contains(shard.id);
    if (asked && state.Find(shard.owner) != nullptr) owners.insert(shard.owner);
  }
  const uint64_t now = context_.clock->NowNanos();
  if (owners.empty() || now - looked_for_whole_nanos_ < Nanos(kWholeEvery)) return;
  looked_for_whole_nanos_ = now;
  for (const int64_t owner : owners) {
    sharding::ControlReply reply;
    if (!LoadsOf(owner, &reply).ok()) continue;
    for (const sharding::Load& load : reply.loads()) {
      const size_t index = map_.IndexOf(load.shard());
      if (index < map_.size() && map_.shards()[index].owner == owner) served_.insert(load.shard());
    }
  }
}

Status KeyspaceLeader::LoadsOf(int64_t member, sharding::ControlReply* reply) const {
  if (member == context_.membership->id()) {
    context_.owned->AddLoads(reply);
    return Status::OK();
  }
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::LOADS);
  return context_.links->Control(member, request, Deadline::After(context_.clock, kLoadsPatience),
                                 reply);
}

void KeyspaceLeader::CarryOut(const std::vector<Balancer::Decision>& decisions) {
  std::vector<Balancer::Decision> assigned;
  for (const Balancer::Decision& decision : decisions) {
    if (decision.kind == Kind::kAssign) assigned.push_back(decision);
    if (decision.kind == Kind::kSplit) {
      executor_->Schedule(
          [this, decision] { Split(decision.shard, {}, decision.reason).IgnoreError(); });
    } else if (decision.kind == Kind::kMerge) {
      executor_->Schedule([this, decision] {
        MergeShards(decision.shard, decision.other, decision.reason).IgnoreError();
      });
    }
    if (decision.kind != Kind::kMove) continue;
    // The next round is to know of it.
    if (!BeginMove(decision.shard)) continue;
    executor_->Schedule([this, decision] {
      MoveNow(decision.shard, decision.member, decision.reason).IgnoreError();
    });
  }
  if (assigned.empty()) return;
  const Status status = Assign(assigned);
  for (const Balancer::Decision& decision : assigned) {
    Log(context_.log, status.ok() ? LogLevel::kInfo : LogLevel::kWarn,
        "keyspace {}: shard {} goes to member {}, as {}: {}", context_.opener->name(),
        decision.shard, decision.member, decision.reason, status.ToString());
  }
}

Status KeyspaceLeader::Assign(const std::vector<Balancer::Decision>& decisions) {
  const std::shared_ptr<const KeyspaceState> state = context_.membership->state();
  return Change([&](ShardMap* map) {
    for (const Balancer::Decision& decision : decisions) {
      const size_t index = map->IndexOf(decision.shard);
      if (index == map->size()) continue;
      // It may have been given to another one meanwhile.
      if (state->Find(map->shards()[index].owner) != nullptr) continue;
      map->SetOwner(index, OwnerOfSiblings(*map, index, *state).value_or(decision.member));
    }
    return Status::OK();
  });
}

// ---- What is asked for --------------------------------------------------------------------------

bool KeyspaceLeader::BeginMove(uint32_t shard) {
  MutexLock lock(&mutex_);
  return under_way_.insert(shard).second;
}

Status KeyspaceLeader::Move(uint32_t shard, int64_t member, const std::string& reason) {
  if (!context_.membership->leads()) return NotLeading();
  if (!BeginMove(shard)) {
    return Status::Busy(fmt::format("shard {} is being moved already", shard));
  }
  return MoveNow(shard, member, reason);
}

Status KeyspaceLeader::MoveNow(uint32_t shard, int64_t member, const std::string& reason) {
  Status status = TryMove(shard, member, reason);
  MutexLock lock(&mutex_);
  under_way_.erase(shard);
  return status;
}

Status KeyspaceLeader::TryMove(uint32_t shard, int64_t member, const std::string& reason) {
  const auto no_server = [member] {
    return Status::InvalidArgument(fmt::format("{} is no member that serves shards", member));
  };
  if (!AwaitMember(member, /*serves=*/true)) return no_server();
  int64_t before = 0;
  Status status = Change([&](ShardMap* map) -> Status {
    const size_t index = map->IndexOf(shard);
    if (index == map->size()) {
      return Status::InvalidArgument(fmt::format("there is no shard {}", shard));
    }
    if (map->ReshapingOf(shard) != nullptr || !map->shards()[index].sources.empty()) {
      return Status::Busy(fmt::format("shard {} is being split or merged", shard));
    }
    before = map->shards()[index].owner;
    return Status::OK();
  });
  if (status.ok() && before != member) {
    // So that the next owner has little to read of the log. It need not succeed.
    PrepareToMove(shard, before).IgnoreError();
    status = Change([&](ShardMap* map) -> Status {
      const size_t index = map->IndexOf(shard);
      if (index < map->size() && map->shards()[index].owner == member) return Status::OK();
      // One that had none may have got one meanwhile.
      const bool meddled =
          before != 0 && index < map->size() && map->shards()[index].owner != before;
      if (index == map->size() || meddled) {
        return Status::Aborted(fmt::format("shard {} was moved or divided meanwhile", shard));
      }
      if (!IsMember(member, /*serves=*/true)) return no_server();
      map->SetOwner(index, member);
      return Status::OK();
    });
    Log(context_.log, LogLevel::kInfo,
        "keyspace {}: shard {} moves from member {} to {}, as {}: {}", context_.opener->name(),
        shard, before, member, reason, status.ToString());
  }
  return status;
}

bool KeyspaceLeader::IsMember(int64_t id, bool serves) const {
  const std::shared_ptr<const KeyspaceState> state = context_.membership->state();
  const MemberInfo* const info = state->Find(id);
  return info != nullptr && (info->serves() || !serves);
}

bool KeyspaceLeader::AwaitMember(int64_t id, bool serves) const {
  const Deadline deadline = Deadline::After(context_.clock, kNewsPatience);
  while (!IsMember(id, serves)) {
    if (deadline.Expired()) return false;
    context_.clock->SleepFor(kNewsEvery);
  }
  return true;
}

Status KeyspaceLeader::PrepareToMove(uint32_t shard, int64_t owner) const {
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::PREPARE_TO_MOVE);
  request.set_shard(shard);
  sharding::ControlReply reply;
  return AskOwner(owner, request, &reply);
}

Status KeyspaceLeader::AskOwner(int64_t owner, const sharding::ControlRequest& request,
                                sharding::ControlReply* reply) const {
  if (owner == context_.membership->id()) return context_.ask_self(request, reply);
  sharding::MemberRequest message;
  *message.mutable_control() = request;
  sharding::MemberReply answer;
  bool sent = false;
  NACRE_RETURN_IF_ERROR(context_.links->CallAndSleep(owner, &message, &answer, &sent));
  *reply = answer.control();
  return GetStatus(answer);
}

// ---- Splits and merges --------------------------------------------------------------------------

Status KeyspaceLeader::Split(uint32_t shard, const std::string& key, const std::string& reason) {
  const size_t undivided = context_.opener->options().undivided_prefix_bytes;
  NACRE_RETURN_IF_ERROR(CheckUndivided(undivided, key));
  std::string at = key;
  if (at.empty()) {
    int64_t owner = 0;
    const Status found = Change([&](ShardMap* map) -> Status {
      const size_t index = map->IndexOf(shard);
      if (index == map->size()) {
        return Status::InvalidArgument(fmt::format("there is no shard {}", shard));
      }
      owner = map->shards()[index].owner;
      return Status::OK();
    });
    NACRE_RETURN_IF_ERROR(found);
    NACRE_RETURN_IF_ERROR(FindSplitKey(owner, shard, &at));
  }
  return Reshape({shard}, reason, [&](ShardMap* map, ShardMap::Reshaping* reshaping) -> Status {
    if (key.empty()) NACRE_RETURN_IF_ERROR(MoveToUndivided(*map, shard, undivided, &at));
    return map->BeginSplit(shard, at, reshaping);
  });
}

Status KeyspaceLeader::MergeShards(uint32_t low, uint32_t high, const std::string& reason) {
  return Reshape({low, high}, reason, [&](ShardMap* map, ShardMap::Reshaping* reshaping) {
    return map->BeginMerge(low, high, reshaping);
  });
}

Status KeyspaceLeader::FindSplitKey(int64_t owner, uint32_t shard, std::string* key) const {
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::FIND_SPLIT_KEY);
  request.set_shard(shard);
  sharding::ControlReply reply;
  NACRE_RETURN_IF_ERROR(AskOwner(owner, request, &reply));
  *key = reply.key();
  return Status::OK();
}

Status KeyspaceLeader::Reshape(const std::vector<uint32_t>& sources, const std::string& reason,
                               const BeginReshaping& begin) {
  if (!context_.membership->leads()) return NotLeading();
  {
    MutexLock lock(&mutex_);
    for (const uint32_t source : sources) {
      if (under_way_.contains(source)) {
        return Status::Busy(fmt::format("shard {} is being moved, split or merged", source));
      }
    }
    under_way_.insert(sources.begin(), sources.end());
  }
  int64_t owner = 0;
  ShardMap::Reshaping reshaping;
  Status status = CatchAll([&] { return TryReshape(begin, &reshaping, &owner); });
  if (!status.ok() && !reshaping.targets.empty()) {
    Change([&](ShardMap* map) {
      map->CancelReshaping(reshaping);
      return Status::OK();
    }).IgnoreError();  // The next round does that, too.
  }
  Log(context_.log, status.ok() ? LogLevel::kInfo : LogLevel::kWarn,
      "keyspace {}: shard {} is {}, as {}: {}", context_.opener->name(),
      fmt::join(sources, " and "), sources.size() == 1 ? "split" : "merged", reason,
      status.ToString());
  MutexLock lock(&mutex_);
  for (const uint32_t source : sources) under_way_.erase(source);
  return status;
}

Status KeyspaceLeader::TryReshape(const BeginReshaping& begin, ShardMap::Reshaping* reshaping,
                                  int64_t* owner) {
  std::string bytes;
  const Status begun = Change([&](ShardMap* map) -> Status {
    NACRE_RETURN_IF_ERROR(begin(map, reshaping));
    *owner = map->shards()[map->IndexOf(reshaping->sources.front())].owner;
    for (const uint32_t source : reshaping->sources) {
      if (map->shards()[map->IndexOf(source)].owner == *owner) continue;
      return Status::InvalidArgument(
          fmt::format("shards {} are not the same member's: move one of them first",
                      fmt::join(reshaping->sources, " and ")));
    }
    bytes = map->Serialize();
    return Status::OK();
  });
  NACRE_RETURN_IF_ERROR(begun);
  NACRE_POINT("reshaping.begun");
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::RESHAPE);
  request.set_shard(reshaping->targets.front());
  request.set_map(bytes);
  sharding::ControlReply reply;
  NACRE_RETURN_IF_ERROR(AskOwner(*owner, request, &reply));
  NACRE_POINT("reshaping.prepared");
  return Change([&](ShardMap* map) { return map->CommitReshaping(*reshaping, *owner); });
}

void KeyspaceLeader::LookAtReshapings() {
  std::vector<ShardMap::Reshaping> left;
  {
    // After the map: what is under way was so before the map had it.
    MutexLock lock(&mutex_);
    for (const ShardMap::Reshaping& reshaping : map_.reshapings()) {
      if (!under_way_.contains(reshaping.sources.front())) left.push_back(reshaping);
    }
  }
  const bool has_whole = std::ranges::any_of(map_.shards(), [this](const ShardMap::Shard& shard) {
    return !shard.sources.empty() && served_.contains(shard.id);
  });
  if (!left.empty() || has_whole) {
    Change([&](ShardMap* map) {
      for (const ShardMap::Reshaping& reshaping : left) map->CancelReshaping(reshaping);
      for (size_t i = 0; i < map->size(); ++i) {
        const ShardMap::Shard& shard = map->shards()[i];
        if (!shard.sources.empty() && served_.contains(shard.id)) map->SetWhole(i);
      }
      return Status::OK();
    }).IgnoreError();
  }
}

void KeyspaceLeader::LookAfterPool() {
  const uint64_t now = context_.clock->NowNanos();
  {
    MutexLock lock(&mutex_);
    if (saving_ || now < save_again_nanos_) return;
    const bool is_due = now >= look_again_nanos_ || saved_version_ != map_.version();
    if (!is_due && map_.retired().empty()) return;
    saving_ = true;
    look_again_nanos_ = now + Nanos(kLookAfterPool);
  }
  executor_->Schedule([this, map = map_] { SaveAndDestroy(map); });
}

void KeyspaceLeader::SaveAndDestroy(const ShardMap& map) {
  const Status saved = CatchAll([&] { return pool_map_.Keep(map); });
  if (!saved.ok()) {
    Log(context_.log, LogLevel::kWarn, "keyspace {}: the pool does not have its map yet: {}",
        context_.opener->name(), saved.ToString());
  }
  for (const uint32_t id : saved.ok() ? map.retired() : std::vector<uint32_t>()) {
    // One that a process has open still is destroyed later.
    const Status status = CatchAll([&] { return context_.opener->DestroyShard(id); });
    if (!status.ok()) continue;
    Log(context_.log, LogLevel::kInfo, "keyspace {}: what shard {} had is gone",
        context_.opener->name(), id);
    Change([&](ShardMap* changed) {
      changed->RemoveRetired(id);
      return Status::OK();
    }).IgnoreError();
  }
  MutexLock lock(&mutex_);
  saving_ = false;
  if (saved.ok()) saved_version_ = map.version();
  save_again_nanos_ = context_.clock->NowNanos() + Nanos(kSaveAgain);
}

Status KeyspaceLeader::Drain(int64_t member, bool drain) {
  if (!context_.membership->leads()) return NotLeading();
  if (drain && !AwaitMember(member, /*serves=*/false)) {
    return Status::InvalidArgument(fmt::format("{} is no member", member));
  }
  const std::shared_ptr<const KeyspaceState> state = context_.membership->state();
  Log(context_.log, LogLevel::kInfo, "keyspace {}: member {} is {}", context_.opener->name(),
      member, drain ? "to be drained" : "to be drained no more");
  return Change([&](ShardMap* map) {
    // Those that are gone need not be known any more.
    const std::vector<int64_t> draining = map->draining();
    for (const int64_t id : draining) {
      if (state->Find(id) == nullptr) map->SetDraining(id, false);
    }
    if (map->IsDraining(member) != drain) map->SetDraining(member, drain);
    return Status::OK();
  });
}

Status KeyspaceLeader::MakeFamilies(const FamilyOptions& families) {
  if (!context_.membership->leads()) return NotLeading();
  return Change([&](ShardMap* map) -> Status {
    for (const auto& [name, options] : families) {
      if (map->HasFamily(name)) {
        return Status::InvalidArgument("column family " + name + " exists already");
      }
      map->AddSharedFamily(name, options);
    }
    return Status::OK();
  });
}

Status KeyspaceLeader::DropFamilies(const FamilyOptions& families) {
  if (!context_.membership->leads()) return NotLeading();
  return Change([&](ShardMap* map) -> Status {
    for (const auto& [name, options] : families) {
      if (!map->HasFamily(name)) {
        return Status::InvalidArgument("column family " + name + " was dropped");
      }
      map->RemoveFamily(name);
    }
    return Status::OK();
  });
}

Status KeyspaceLeader::SetBalance(const BalanceChanges& changes) {
  if (!context_.membership->leads()) return NotLeading();
  const Status status = Change([&](ShardMap* map) -> Status {
    ShardMap::Balance balance = map->balance();
    NACRE_RETURN_IF_ERROR(ChangeBalance(changes, &balance));
    map->SetBalance(balance);
    return Status::OK();
  });
  for (const auto& [name, text] : changes) {
    Log(context_.log, LogLevel::kInfo, "keyspace {}: {}={} was asked for: {}",
        context_.opener->name(), name, text, status.ToString());
  }
  return status;
}

}  // namespace nacre
