#pragma once

#include <cstddef>
#include <string>

#include "nacre/utilities/sharded_db.h"
#include "sharding/shard_map.h"

namespace nacre {

/// What the map says of the shard that has this index.
inline ShardInfo DescribeShard(const std::string& keyspace, const ShardMap& map, size_t index) {
  const ShardMap::Shard& shard = map.shards()[index];
  const std::string* const end = map.EndOf(index);
  return {.id = shard.id,
          .database = ShardMap::DatabaseOf(keyspace, shard.id),
          .begin = shard.begin,
          .end = end == nullptr ? std::string() : *end,
          .last = end == nullptr,
          .owner = shard.owner,
          .epoch = shard.epoch};
}

}  // namespace nacre
