#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "sharding/balance/balance_options.h"
#include "sharding/balance/balancer.h"
#include "sharding/balance/load_rates.h"
#include "sharding/members/membership.h"
#include "sharding/members/owned_shards.h"
#include "sharding/members/pool_map.h"
#include "sharding/remote/member_links.h"
#include "sharding/remote/member_messages.h"
#include "sharding/shard_map.h"
#include "sharding/shard_opener.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/executor.h"
#include "util/threads/task_threads.h"

namespace nacre {

/// What a member does while it leads: it makes the keyspace, and changes its map.
///
/// Thread safety: Round from one thread at a time; all else from many.
class KeyspaceLeader {
 public:
  struct Context {
    Membership* membership;
    MemberLinks* links;
    OwnedShards* owned;
    TaskThreads* threads;
    const ShardOpener* opener;
    Clock* clock;
    std::shared_ptr<Logger> log;
    /// Makes the keyspace in the pool, or reads what is there.
    std::function<Status(ShardMap* map)> make;
    /// What members are asked that own shards, asked of this one.
    std::function<Status(const sharding::ControlRequest& request, sharding::ControlReply* reply)>
        ask_self;
  };

  explicit KeyspaceLeader(Context context);

  /// Looks at all there is once, and decides. A member that does not lead lets go of what only the
  /// one that leads has.
  Status Round() EXCLUDES(mutex_);
  /// There is something to let go of.
  bool has_led() const { return pool_map_.is_open(); }
  /// Before the member leaves: the next one that leads finds nothing open here.
  void Stop() { pool_map_.Close(); }

  /// What is asked for. `TryAgain` if this member does not lead.
  Status Move(uint32_t shard, int64_t member, const std::string& reason) EXCLUDES(mutex_);
  /// Returns when the new shards are in the map. No key: in the middle of what it holds.
  Status Split(uint32_t shard, const std::string& key, const std::string& reason) EXCLUDES(mutex_);
  /// Both have to have the same owner.
  Status MergeShards(uint32_t low, uint32_t high, const std::string& reason) EXCLUDES(mutex_);
  Status Drain(int64_t member, bool drain);
  Status SetBalance(const BalanceChanges& changes);
  /// Adds families to the map, or removes them: the owners follow. `InvalidArgument`: there is such
  /// a family already, or there is none.
  Status MakeFamilies(const FamilyOptions& families);
  Status DropFamilies(const FamilyOptions& families);

 private:
  Status MakeMap();
  /// Reads the map, has `change` change it, and writes it, until nothing has come between. A
  /// failure of `change` is answered, and changes nothing.
  Status Change(const std::function<Status(ShardMap* map)>& change);
  Status Parse(const std::string& bytes, ShardMap* map) const {
    return ShardMap::Parse(bytes, context_.opener->options().comparator, map);
  }
  void LookAtLoads(const KeyspaceState& state);
  /// Asks the owners of shards that are not known to be whole whether they serve them.
  void LookForWhole(const KeyspaceState& state);
  Status LoadsOf(int64_t member, sharding::ControlReply* reply) const;
  /// Counts a move as under way, unless one of the shard is. MoveNow ends it.
  bool BeginMove(uint32_t shard) EXCLUDES(mutex_);
  Status MoveNow(uint32_t shard, int64_t member, const std::string& reason) EXCLUDES(mutex_);
  Status TryMove(uint32_t shard, int64_t member, const std::string& reason);
  /// Whether there is such a member, that serves shards if it `serves`.
  bool IsMember(int64_t id, bool serves) const;
  /// The same for one that may have joined a moment ago.
  bool AwaitMember(int64_t id, bool serves) const;
  Status PrepareToMove(uint32_t shard, int64_t owner) const;
  void CarryOut(const std::vector<Balancer::Decision>& decisions) EXCLUDES(mutex_);
  Status Assign(const std::vector<Balancer::Decision>& decisions);
  /// `begin` begins the split or merge in a map. `sources` are under way, until it returns.
  using BeginReshaping = std::function<Status(ShardMap* map, ShardMap::Reshaping* reshaping)>;
  Status Reshape(const std::vector<uint32_t>& sources, const std::string& reason,
                 const BeginReshaping& begin) EXCLUDES(mutex_);
  Status TryReshape(const BeginReshaping& begin, ShardMap::Reshaping* reshaping, int64_t* owner);
  Status FindSplitKey(int64_t owner, uint32_t shard, std::string* key) const;
  /// Asks the owner of a shard, itself if it is that, for what takes its time.
  Status AskOwner(int64_t owner, const sharding::ControlRequest& request,
                  sharding::ControlReply* reply) const;
  /// Ends what earlier leaders have begun, and takes the shards that are served for whole.
  void LookAtReshapings() EXCLUDES(mutex_);
  /// Has the pool keep the map, and then deletes what it does not need any more.
  void LookAfterPool() EXCLUDES(mutex_);
  void SaveAndDestroy(const ShardMap& map) EXCLUDES(mutex_);
  /// Members that came back under another id keep what they had.
  void GiveBack(const KeyspaceState& state);

  const Context context_;

  // Used by the thread that calls Round.
  ShardMap map_;  ///< That of `map_changed_`.
  int64_t map_changed_ = 0;
  Balancer balancer_;
  LoadRates rates_;
  std::map<uint32_t, ShardLoad> loads_;
  std::set<uint32_t> served_;                 ///< Shards that their owners said they serve.
  std::map<int64_t, std::string> addresses_;  ///< Those of members of now and before.
  uint64_t looked_nanos_ = 0;
  uint64_t looked_for_whole_nanos_ = 0;

  Mutex mutex_;
  std::set<uint32_t> under_way_ GUARDED_BY(mutex_);
  bool saving_ GUARDED_BY(mutex_) = false;
  uint64_t save_again_nanos_ GUARDED_BY(mutex_) = 0;  ///< Not before.
  uint64_t look_again_nanos_ GUARDED_BY(mutex_) = 0;
  uint64_t saved_version_ GUARDED_BY(mutex_) = 0;  ///< What the pool was told last.
  PoolMap pool_map_;
  const std::unique_ptr<Executor> executor_;  ///< Ends first.
};

}  // namespace nacre
