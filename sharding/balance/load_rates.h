#pragma once

#include <cstdint>
#include <map>

#include "sharding/balance/balancer.h"
#include "sharding/shard_map.h"

namespace nacre {

/// Operations per second of shards, from how many each has done so far.
///
/// Thread safety: none.
class LoadRates {
 public:
  /// The load of a shard that holds `bytes`, and has done `operations` since `owner` has it. It is
  /// known the second time that an owner says so.
  ShardLoad Measure(uint32_t shard, int64_t owner, uint64_t bytes, uint64_t operations,
                    uint64_t now_nanos);
  /// Forgets shards that the map does not have.
  void Keep(const ShardMap& map);

 private:
  struct Count {
    int64_t owner = -1;
    uint64_t operations = 0;
    uint64_t nanos = 0;
  };
  std::map<uint32_t, Count> counts_;
};

}  // namespace nacre
