#include "sharding/members/keyspace_admin.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "nacre/comparator.h"
#include "sharding/remote/member_codec.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;

/// A leader that has not answered for so long may be none any more.
constexpr milliseconds kAttempt{3000};
constexpr milliseconds kAdminAskAgain{50};
/// Members that are asked at a time.
constexpr size_t kMaxAsked = 64;

/// The keyspace that a key belongs to, by what follows the pool's prefix; empty if to none.
std::string_view KeyspaceOf(std::string_view key) {
  for (const std::string_view name : {"/map", "/leader"}) {
    if (key.ends_with(name)) return key.substr(0, key.size() - name.size());
  }
  const size_t members = key.rfind("/members/");
  return members == std::string_view::npos ? std::string_view() : key.substr(0, members);
}

/// What the keys of all keyspaces begin with.
std::string PrefixOfAll() {
  std::string prefix = KeyspacePrefix(MembershipOptions().pool, "");
  prefix.pop_back();  // What ends the name.
  return prefix;
}

/// The next one that leads may answer otherwise.
bool MayPass(const Status& status) {
  return status.IsTryAgain() || status.IsFenced() || status.IsUnavailable() ||
         status.IsTimedOut() || status.IsBusy();
}

}  // namespace

KeyspaceAdmin::KeyspaceAdmin(std::shared_ptr<Coordinator> coordinator, std::string keyspace,
                             const pool::PeerSecurity& security, milliseconds timeout, Clock* clock)
    : coordinator_(std::move(coordinator)),
      keyspace_(std::move(keyspace)),
      timeout_(timeout),
      clock_(clock),
      links_(security, clock) {}

Status KeyspaceAdmin::Open(const std::string& coordinator, const std::string& keyspace,
                           const pool::PeerSecurity& security, milliseconds timeout, Clock* clock,
                           std::unique_ptr<KeyspaceAdmin>* admin) {
  std::shared_ptr<Coordinator> opened;
  NACRE_RETURN_IF_ERROR(OpenCoordinator(coordinator, &opened));
  admin->reset(new KeyspaceAdmin(std::move(opened), keyspace, security, timeout, clock));
  return Status::OK();
}

// ---- Looking ------------------------------------------------------------------------------------

Status KeyspaceAdmin::List(Coordinator* coordinator, Deadline deadline,
                           std::vector<std::string>* keyspaces) {
  const std::string prefix = PrefixOfAll();
  std::vector<Coordinator::Entry> entries;
  int64_t revision = 0;
  NACRE_RETURN_IF_ERROR(coordinator->Read(prefix, deadline, &entries, &revision));
  std::set<std::string> names;
  for (const Coordinator::Entry& entry : entries) {
    const std::string_view name = KeyspaceOf(std::string_view(entry.key).substr(prefix.size()));
    if (!name.empty()) names.emplace(name);
  }
  keyspaces->assign(names.begin(), names.end());
  return Status::OK();
}

Status KeyspaceAdmin::Read(KeyspaceState* state) {
  int64_t leader_changed = 0;
  NACRE_RETURN_IF_ERROR(ReadKeyspace(coordinator_.get(), PrefixOfAll() + keyspace_ + '/',
                                     Deadline::After(clock_, timeout_), state, &leader_changed));
  if (state->members.empty() && state->leader == 0 && state->map_changed == 0) {
    return Status::NotFound(coordinator_->name() + " knows no keyspace '" + keyspace_ + "'");
  }
  links_.SetMembers(state->Servers());
  return Status::OK();
}

Status KeyspaceAdmin::ParseMap(const KeyspaceState& state, ShardMap* map) {
  if (state.map_changed == 0) return Status::NotFound("no member has made the keyspace's map yet");
  return ShardMap::Parse(state.map, BytewiseComparator(), map);
}

KeyspaceAdmin::Answer KeyspaceAdmin::LoadsOf(int64_t member, Deadline deadline) {
  sharding::ControlRequest request;
  request.set_kind(sharding::ControlRequest::LOADS);
  sharding::ControlReply reply;
  Answer answer;
  answer.status = links_.Control(member, request, deadline, &reply);
  if (!answer.status.ok()) return answer;
  for (const sharding::Load& load : reply.loads()) {
    answer.loads[load.shard()] = {.bytes = load.bytes(), .operations = load.operations()};
  }
  return answer;
}

std::map<int64_t, KeyspaceAdmin::Answer> KeyspaceAdmin::Loads(const KeyspaceState& state) {
  std::vector<int64_t> servers;
  for (const auto& [member, address] : state.Servers()) servers.push_back(member);
  std::vector<Answer> answers(servers.size());
  const size_t threads = std::min(servers.size(), kMaxAsked);
  RunTogether("nacre-ask", threads, [&](size_t first) {
    for (size_t i = first; i < servers.size(); i += threads) {
      answers[i] = LoadsOf(servers[i], Deadline::After(clock_, timeout_));
    }
  });
  std::map<int64_t, Answer> by_member;
  for (size_t i = 0; i < servers.size(); ++i) by_member[servers[i]] = std::move(answers[i]);
  return by_member;
}

// ---- Orders -------------------------------------------------------------------------------------

Status KeyspaceAdmin::AskLeaderOnce(const sharding::ControlRequest& request) {
  KeyspaceState state;
  NACRE_RETURN_IF_ERROR(Read(&state));
  if (state.leader == 0) return Status::TryAgain("no member leads keyspace " + keyspace_);
  sharding::ControlReply reply;
  return links_.Control(state.leader, request, Deadline::After(clock_, kAttempt), &reply);
}

Status KeyspaceAdmin::AskLeader(const sharding::ControlRequest& request, Deadline deadline) {
  // Without the coordinator, or a keyspace, there is nothing to wait for.
  KeyspaceState state;
  NACRE_RETURN_IF_ERROR(Read(&state));
  if (state.Servers().empty()) {
    return Status::Unavailable("no member of keyspace " + keyspace_ +
                               " serves shards, so none leads it");
  }
  for (;;) {
    const Status status = AskLeaderOnce(request);
    if (!MayPass(status)) return status;
    if (deadline.Expired()) {
      return Status::TimedOut("keyspace " + keyspace_ + ": " + status.ToString());
    }
    clock_->SleepFor(kAdminAskAgain);
  }
}

Status KeyspaceAdmin::Move(uint32_t shard, int64_t member) {
  const Deadline deadline = Deadline::After(clock_, kPatience);
  NACRE_RETURN_IF_ERROR(AskLeader(MoveRequest(shard, member), deadline));
  for (;;) {
    KeyspaceState state;
    ShardMap map;
    NACRE_RETURN_IF_ERROR(Read(&state));
    if (state.Find(member) == nullptr) {
      return Status::Aborted(fmt::format("member {} is none any more", member));
    }
    // Another order may have come between. A map that is not understood here tells nothing.
    if (ParseMap(state, &map).ok()) {
      const size_t index = map.IndexOf(shard);
      if (index == map.size() || map.shards()[index].owner != member) {
        return Status::Aborted(fmt::format("shard {} was moved on meanwhile", shard));
      }
    }
    const Answer answer = LoadsOf(member, Deadline::After(clock_, timeout_));
    if (answer.loads.contains(shard)) return Status::OK();
    if (deadline.Expired()) {
      return Status::TimedOut(fmt::format(
          "shard {} belongs to member {}, which does not serve it so far{}", shard, member,
          answer.status.ok() ? std::string() : ": " + answer.status.ToString()));
    }
    clock_->SleepFor(kAdminAskAgain);
  }
}

Status KeyspaceAdmin::Split(uint32_t shard, const std::string& key) {
  return Reshape(shard, SplitRequest(shard, key));
}

Status KeyspaceAdmin::MergeShards(uint32_t low, uint32_t high) {
  return Reshape(low, MergeRequest(low, high));
}

Status KeyspaceAdmin::Reshape(uint32_t shard, const sharding::ControlRequest& request) {
  const Deadline deadline = Deadline::After(clock_, kPatience);
  bool asked = false;
  bool begun = false;
  for (;;) {
    KeyspaceState state;
    ShardMap map;
    NACRE_RETURN_IF_ERROR(Read(&state));
    NACRE_RETURN_IF_ERROR(ParseMap(state, &map));
    const bool under_way = map.ReshapingOf(shard) != nullptr;
    if (asked && map.IndexOf(shard) == map.size()) return Status::OK();
    if (begun && !under_way) {
      return Status::Aborted(
          fmt::format("shard {} is as before: the log of the member that leads says why", shard));
    }
    if (under_way && asked) begun = true;
    if (!begun) {
      const Status status = AskLeaderOnce(request);
      if (status.ok()) return status;
      // An earlier order of these may have been heard, though none answered.
      if (!MayPass(status) && !(asked && (status.IsBusy() || status.IsInvalidArgument()))) {
        return status;
      }
      if (deadline.Expired()) {
        return Status::TimedOut("keyspace " + keyspace_ + ": " + status.ToString());
      }
      asked = true;
    }
    clock_->SleepFor(kAdminAskAgain);
  }
}

Status KeyspaceAdmin::Drain(int64_t member, bool drain) {
  return AskLeader(DrainRequest(member, drain), Deadline::After(clock_, kPatience));
}

Status KeyspaceAdmin::SetBalance(const BalanceChanges& changes) {
  return AskLeader(BalanceRequest(changes), Deadline::After(clock_, kPatience));
}

}  // namespace nacre
