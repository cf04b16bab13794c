#include "sharding/members/keyspace_leader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "util/log.h"
#include "util/named_point.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using Kind = Balancer::Decision::Kind;

constexpr milliseconds kLoadsEvery{1000};
constexpr milliseconds kLoadsPatience{500};

uint64_t Nanos(std::chrono::nanoseconds time) { return static_cast<uint64_t>(time.count()); }

Status NotLeading() { return Status::TryAgain("this member does not lead the keyspace"); }

}  // namespace

KeyspaceLeader::KeyspaceLeader(Context context)
    : context_(std::move(context)),
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
        context_.keyspace, map.size());
  }
  return Status::OK();
}

// ---- By itself ----------------------------------------------------------------------------------

Status KeyspaceLeader::Round() {
  if (!context_.membership->leads()) {
    looked_nanos_ = 0;
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
        context_.keyspace, before, now, status.ToString());
  }
}

void KeyspaceLeader::LookAtLoads(const KeyspaceState& state) {
  const uint64_t now = context_.clock->NowNanos();
  if (looked_nanos_ != 0 && now - looked_nanos_ < Nanos(kLoadsEvery)) return;
  looked_nanos_ = now;
  std::map<uint32_t, ShardLoad> loads;
  for (const auto& [member, address] : state.Servers()) {
    sharding::ControlReply reply;
    if (!LoadsOf(member, &reply).ok()) continue;
    for (const sharding::Load& load : reply.loads()) {
      const size_t index = map_.IndexOf(load.shard());
      if (index == map_.size() || map_.shards()[index].owner != member) continue;
      const uint64_t then = context_.clock->NowNanos();
      Count& count = counts_[load.shard()];
      ShardLoad& known = loads[load.shard()];
      if (count.owner == member && count.operations <= load.operations() && count.nanos < then) {
        known.known = true;
        known.operations_per_second = static_cast<double>(load.operations() - count.operations) *
                                      1e9 / static_cast<double>(then - count.nanos);
      }
      known.bytes = load.bytes();
      count = {.owner = member, .operations = load.operations(), .nanos = then};
    }
  }
  loads_ = std::move(loads);
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
        "keyspace {}: shard {} goes to member {}, as {}: {}", context_.keyspace, decision.shard,
        decision.member, decision.reason, status.ToString());
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
      map->SetOwner(index, decision.member);
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
  const auto server_of = [this](int64_t id) -> Status {
    const std::shared_ptr<const KeyspaceState> state = context_.membership->state();
    const MemberInfo* const info = state->Find(id);
    if (info != nullptr && info->serves()) return Status::OK();
    return Status::InvalidArgument(fmt::format("{} is no member that serves shards", id));
  };
  NACRE_RETURN_IF_ERROR(server_of(member));
  int64_t before = 0;
  Status status = Change([&](ShardMap* map) -> Status {
    const size_t index = map->IndexOf(shard);
    if (index == map->size()) {
      return Status::InvalidArgument(fmt::format("there is no shard {}", shard));
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
      NACRE_RETURN_IF_ERROR(server_of(member));
      map->SetOwner(index, member);
      return Status::OK();
    });
    Log(context_.log, LogLevel::kInfo,
        "keyspace {}: shard {} moves from member {} to {}, as {}: {}", context_.keyspace, shard,
        before, member, reason, status.ToString());
  }
  return status;
}

Status KeyspaceLeader::PrepareToMove(uint32_t shard, int64_t owner) const {
  if (owner == context_.membership->id()) return context_.owned->PrepareToMove(shard);
  sharding::MemberRequest request;
  request.mutable_control()->set_kind(sharding::ControlRequest::PREPARE_TO_MOVE);
  request.mutable_control()->set_shard(shard);
  sharding::MemberReply reply;
  bool sent = false;
  return context_.links->CallAndSleep(owner, &request, &reply, &sent);
}

Status KeyspaceLeader::Drain(int64_t member, bool drain) {
  if (!context_.membership->leads()) return NotLeading();
  const std::shared_ptr<const KeyspaceState> state = context_.membership->state();
  if (drain && state->Find(member) == nullptr) {
    return Status::InvalidArgument(fmt::format("{} is no member", member));
  }
  Log(context_.log, LogLevel::kInfo, "keyspace {}: member {} is {}", context_.keyspace, member,
      drain ? "to be drained" : "to be drained no more");
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

Status KeyspaceLeader::Pause(bool pause) {
  if (!context_.membership->leads()) return NotLeading();
  return Change([&](ShardMap* map) {
    ShardMap::Balance balance = map->balance();
    balance.paused = pause;
    map->SetBalance(balance);
    return Status::OK();
  });
}

}  // namespace nacre
