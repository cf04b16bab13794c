#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "sharding/balance/balancer.h"
#include "sharding/balance/load_rates.h"
#include "sharding/sharded_view.h"
#include "util/clock.h"
#include "util/threads/executor.h"
#include "util/threads/periodic_task.h"
#include "util/threads/task_threads.h"

namespace nacre {

/// Splits and merges the shards of a keyspace that this process owns alone, when they are too
/// large, too hot, or small and cold (ShardedDB::SetBalance). It looks once a second.
///
/// Its end waits for what is under way. Thread safety: none; it has a thread of its own.
class LocalBalancer {
 public:
  struct Context {
    ShardedViews* views;  ///< Outlives it, as `threads` and `clock` do.
    TaskThreads* threads;
    Clock* clock;
    std::string keyspace;
    std::shared_ptr<Logger> log;
    std::function<Status(uint32_t shard)> split;  ///< In its middle.
    std::function<Status(uint32_t low, uint32_t high)> merge;
  };

  explicit LocalBalancer(Context context);

 private:
  void Round();
  Status CarryOut(const Balancer::Decision& decision) const;

  const Context context_;
  const std::unique_ptr<Executor> executor_;
  Balancer balancer_;
  LoadRates rates_;
  PeriodicTask task_;  ///< Ends first.
};

}  // namespace nacre
