#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"
#include "sharding/batches/batch_part.h"
#include "sharding/batches/key_holds.h"
#include "sharding/shard_map.h"

namespace nacre {

/// The shard that all updates of `batch` are for; none if there are several. 0 for an empty batch.
/// `Corruption` if it is malformed.
Status FindOnlyShard(const ShardMap& map, const WriteBatch& batch, std::optional<size_t>* shard);

/// Divides `batch` among its shards, which ascend in `*parts`; range deletions are cut where shards
/// begin, and log data go to the first part. `InvalidArgument` for what no shard would take, such
/// as a family that `map` has not got.
Status DivideBatch(const ShardMap& map, const WriteBatch& batch, std::vector<BatchPart>* parts);

/// Gives the updates of each family but the default one the handle that `find` answers for its id.
/// `InvalidArgument` if that is null.
Status RenameFamilies(const std::function<std::shared_ptr<ColumnFamilyHandle>(uint32_t id)>& find,
                      WriteBatch* batch);

/// Adds the updates of `from` to `to`, with other ids of families: `id_of` of those that they have.
/// Log data are left out.
Status AppendUpdates(const WriteBatch& from, const std::function<uint32_t(uint32_t id)>& id_of,
                     WriteBatch* to);

/// Removes the updates of families for which `has` answers false. `Corruption` if it is malformed.
Status KeepFamilies(const std::function<bool(uint32_t id)>& has, WriteBatch* batch);

/// The keys of updates. Families have the ids that the batch has for them.
KeySets KeysOf(const WriteBatch& batch);
/// The keys of its updates, of its checks and of its locks.
KeySets KeysOf(const BatchPart& part);

}  // namespace nacre
