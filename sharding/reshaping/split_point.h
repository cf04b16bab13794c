#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "nacre/status.h"
#include "sharding/shard_map.h"

namespace nacre {

/// Moves `*key`, in the middle of what the shard holds, to where no keys are divided that begin
/// with the same `prefix_bytes` (ShardedOptions::undivided_prefix_bytes), which are in the order of
/// their bytes: behind those that begin as `*key` does, or else before them; it then has so many
/// bytes. `NotFound` if the shard has no such place inside. Nothing if `prefix_bytes` is 0.
Status MoveToUndivided(const ShardMap& map, uint32_t shard, size_t prefix_bytes, std::string* key);
/// `InvalidArgument` unless `key` has just so many bytes, or none, which stands for the middle.
Status CheckUndivided(size_t prefix_bytes, const std::string& key);

}  // namespace nacre
