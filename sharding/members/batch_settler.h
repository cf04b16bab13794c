#pragma once

#include <memory>

#include "nacre/logger.h"
#include "sharding/members/owned_shards.h"
#include "sharding/sharded_view.h"
#include "util/clock.h"

namespace nacre {

/// Ends batches over several shards that have parts in this member's shards, and that the process
/// which wrote them does not end: it died, or lost the way to a shard. It asks the shard that
/// decides, wherever that is.
///
/// Thread safety: Settle from one thread at a time.
class BatchSettler {
 public:
  /// All outlive it.
  BatchSettler(ShardedViews* views, OwnedShards* owned, Clock* clock, std::shared_ptr<Logger> log)
      : views_(views), owned_(owned), clock_(clock), log_(std::move(log)) {}

  /// Whether there is anything to settle.
  bool Needed() const;
  /// Ends those that can be ended now.
  void Settle();

 private:
  Status SettleOne(const ShardedView& view, LocalShard* shard, const std::string& batch);

  ShardedViews* const views_;
  OwnedShards* const owned_;
  Clock* const clock_;
  const std::shared_ptr<Logger> log_;
};

}  // namespace nacre
