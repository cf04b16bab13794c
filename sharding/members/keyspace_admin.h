#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "sharding/balance/balance_options.h"
#include "sharding/members/coordinator.h"
#include "sharding/members/membership.h"
#include "sharding/remote/member_links.h"
#include "sharding/shard_map.h"
#include "util/clock.h"

namespace nacre {

/// What an operator sees of a keyspace with a coordinator, and asks of it, by a process that is no
/// member and has no pool.
///
/// Invariant: it writes nothing to the coordinator. What changes is changed by the member that
/// leads.
///
/// Thread safety: all methods may be called from many threads at once.
class KeyspaceAdmin {
 public:
  /// How long an order is put to whichever member leads by then.
  static constexpr std::chrono::seconds kPatience{10};

  /// What a member says of a shard that it serves.
  struct Load {
    uint64_t bytes = 0;
    uint64_t operations = 0;  ///< Since it has it open.
  };
  struct Answer {
    Status status;                   ///< Why it cannot be asked.
    std::map<uint32_t, Load> loads;  ///< By the ids of shards.
  };

  /// `coordinator` is as ShardedOptions has it, `security` that of the keyspace's pool. `timeout`:
  /// for the coordinator, and for each member. Fails as OpenCoordinator does; it connects to
  /// nothing yet. `clock` outlives it.
  static Status Open(const std::string& coordinator, const std::string& keyspace,
                     const pool::PeerSecurity& security, std::chrono::milliseconds timeout,
                     Clock* clock, std::unique_ptr<KeyspaceAdmin>* admin);
  /// The keyspaces that the coordinator knows, in the order of their names. Fails as it does.
  static Status List(Coordinator* coordinator, Deadline deadline,
                     std::vector<std::string>* keyspaces);

  /// What the coordinator has of the keyspace. `NotFound` if that is nothing; else it fails as
  /// ReadKeyspace does.
  Status Read(KeyspaceState* state);
  /// The map of a state. `NotFound` if no member has made it yet; else it fails as ShardMap::Parse
  /// does, with the bytewise comparator: applications' own are not known here.
  static Status ParseMap(const KeyspaceState& state, ShardMap* map);
  /// Asks the members that serve shards, all at once, which of them they have open.
  std::map<int64_t, Answer> Loads(const KeyspaceState& state);

  // ---- Orders. All may be given again. ----
  // Each is put to the member that leads, and to the next one if that fails, for kPatience. Then
  // they answer `TimedOut`, and what was asked for may still take place. `Unavailable` if no member
  // can lead. What the leader refuses is `InvalidArgument`.

  /// Gives a shard to a member, and returns when that serves it. `Aborted` if the shard was given
  /// to another one meanwhile, or the member is gone.
  Status Move(uint32_t shard, int64_t member);
  /// Splits a shard, at `key` or, if that is empty, in the middle of what it holds; or merges two.
  /// Returns when the map has the new shards, which takes as long as copying what they hold. The
  /// second time the shard is not there any more, which is `InvalidArgument`.
  Status Split(uint32_t shard, const std::string& key);
  Status MergeShards(uint32_t low, uint32_t high);
  /// From here on, or no more, the member gets no shards, and those that it has go to others.
  Status Drain(int64_t member, bool drain);
  /// As ShardedDB::SetBalance.
  Status SetBalance(const BalanceChanges& changes);

 private:
  KeyspaceAdmin(std::shared_ptr<Coordinator> coordinator, std::string keyspace,
                const pool::PeerSecurity& security, std::chrono::milliseconds timeout,
                Clock* clock);

  Answer LoadsOf(int64_t member, Deadline deadline);
  Status AskLeader(const sharding::ControlRequest& request, Deadline deadline);
  /// Has the leader split or merge `shard`, and waits for that.
  Status Reshape(uint32_t shard, const sharding::ControlRequest& request);
  /// Asks the member that leads now, if one does, once.
  Status AskLeaderOnce(const sharding::ControlRequest& request);

  const std::shared_ptr<Coordinator> coordinator_;
  const std::string keyspace_;
  const std::chrono::milliseconds timeout_;
  Clock* const clock_;
  MemberLinks links_;
};

}  // namespace nacre
