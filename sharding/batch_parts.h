#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "nacre/status.h"
#include "nacre/write_batch.h"
#include "sharding/key_holds.h"
#include "sharding/shard_map.h"
#include "sharding/sharded_family.h"

namespace nacre {

/// What of a batch belongs to one shard.
struct BatchPart {
  size_t shard = 0;
  WriteBatch updates;
  KeySets keys;
};

/// Answers the family of an id, but not of the default one. `InvalidArgument`: there is none.
using FindShardedFamily =
    std::function<Status(uint32_t id, std::shared_ptr<const ShardedFamily>* family)>;

/// The shard that all updates of `batch` are for; none if there are several. 0 for an empty batch.
/// `Corruption` if it is malformed.
Status FindOnlyShard(const ShardMap& map, const WriteBatch& batch, std::optional<size_t>* shard);

/// Divides `batch` among its shards, which ascend in `*parts`; range deletions are cut where shards
/// begin, and log data go to the first part. `InvalidArgument` for what no shard would take.
Status DivideBatch(const ShardMap& map, const WriteBatch& batch, const FindShardedFamily& find,
                   std::vector<BatchPart>* parts);

/// Removes the updates of families for which `has` answers false. `Corruption` if it is malformed.
Status KeepFamilies(const std::function<bool(uint32_t id)>& has, WriteBatch* batch);

/// The keys of updates. Families have the ids that the batch has for them.
KeySets KeysOf(const WriteBatch& batch);

}  // namespace nacre
