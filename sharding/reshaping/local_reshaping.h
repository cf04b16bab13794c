#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "sharding/local_shard.h"
#include "sharding/shard_map.h"
#include "sharding/shard_opener.h"
#include "sharding/sharded_view.h"
#include "util/clock.h"

namespace nacre {

class ShardReshaper;

/// Splits and merges of shards that are all this process's: it changes the map itself.
///
/// Thread safety: none; while it is used nothing else changes the map.
class LocalReshaping {
 public:
  /// Both outlive it. The views are published with it.
  LocalReshaping(ShardOpener* opener, ShardedViews* views, Clock* clock)
      : opener_(opener), views_(views), clock_(clock) {}

  /// `begin` begins a split or a merge in the map. Returns when the new shards serve. A failure has
  /// changed nothing, unless it says otherwise.
  Status Run(const std::function<Status(ShardMap* map, ShardMap::Reshaping* reshaping)>& begin);
  /// Ends what an earlier process has begun, once all shards are open.
  void EndThoseBefore();

 private:
  /// From where the map has it to where the new shards serve.
  Status Finish(ShardMap* map, ShardReshaper* reshaper);
  Status OpenTargets(const ShardMap& map, const ShardMap::Reshaping& reshaping,
                     std::vector<std::shared_ptr<LocalShard>>* targets) const;
  Status Settle(const std::vector<std::shared_ptr<LocalShard>>& targets) const;
  /// Deletes the databases of shards that there are no more.
  void DestroyRetired(ShardMap* map);

  ShardOpener* const opener_;
  ShardedViews* const views_;
  Clock* const clock_;
};

}  // namespace nacre
