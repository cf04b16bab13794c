#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "sharding/members/keyspace_admin.h"
#include "sharding/members/membership.h"
#include "sharding/shard_map.h"

// What nacre-ctl shows of a keyspace with a coordinator.

namespace nacre::ctl {

/// How a shard is.
enum class ShardState : uint8_t {
  kServed,   ///< Its owner serves it.
  kOpening,  ///< Its owner does not serve it yet.
  kMoving,   ///< Its owner does not serve it yet, and another member does still.
  kSilent,   ///< Its owner is a member that does not answer.
  kOrphan,   ///< It has no owner, or one that is no member any more.
};
/// "served", "opening", ...
const char* ToString(ShardState state);

struct ShardReport {
  ShardMap::Shard shard;
  ShardState state = ShardState::kOrphan;
  KeyspaceAdmin::Load load;  ///< Unless nothing serves it.
};

struct KeyspaceReport {
  KeyspaceState state;
  Status map_status;  ///< Why the map is not understood; the rest is empty then.
  ShardMap map;
  std::map<int64_t, KeyspaceAdmin::Answer> answers;  ///< By those members that serve shards.
  std::vector<ShardReport> shards;                   ///< In the order of their keys.

  bool all_served() const;
};

/// Reads the coordinator and asks all members. Fails as KeyspaceAdmin::Read does.
Status AskKeyspace(KeyspaceAdmin* admin, KeyspaceReport* report);

/// "shm:@x (member 17)"; for messages.
std::string NameOf(const KeyspaceState& state, int64_t member);

// These print to standard output: a line for each shard or member, or for each figure; or JSON.
void PrintShards(const KeyspaceReport& report, bool json);
void PrintMembers(const KeyspaceReport& report, bool json);
/// `balance` is as EffectiveBalance gives it.
void PrintBalance(const ShardMap::Balance& balance, bool json);

}  // namespace nacre::ctl
