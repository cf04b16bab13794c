#include "sharding/balance/load_rates.h"

namespace nacre {

ShardLoad LoadRates::Measure(uint32_t shard, int64_t owner, uint64_t bytes, uint64_t operations,
                             uint64_t now_nanos) {
  Count& count = counts_[shard];
  ShardLoad load{.bytes = bytes};
  if (count.owner == owner && count.operations <= operations && count.nanos < now_nanos) {
    load.known = true;
    load.operations_per_second = static_cast<double>(operations - count.operations) * 1e9 /
                                 static_cast<double>(now_nanos - count.nanos);
  }
  count = {.owner = owner, .operations = operations, .nanos = now_nanos};
  return load;
}

void LoadRates::Keep(const ShardMap& map) {
  std::erase_if(counts_, [&](const auto& count) { return map.IndexOf(count.first) == map.size(); });
}

}  // namespace nacre
