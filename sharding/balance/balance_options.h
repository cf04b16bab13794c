#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "nacre/status.h"
#include "sharding/shard_map.h"

namespace nacre {

// How shards are spread, split and merged by themselves, as texts: see ShardedDB::SetBalance.

using BalanceChanges = std::map<std::string, std::string>;

/// Changes what `changes` names. `InvalidArgument`, naming what is wrong; then nothing is changed.
Status ChangeBalance(const BalanceChanges& changes, ShardMap::Balance* balance);

/// What holds, by the names that ChangeBalance knows.
std::unordered_map<std::string, std::string> TextsOf(const ShardMap::Balance& balance);

/// What holds when the defaults are filled in. `split_operations_per_second` that is 0 still is no
/// bound, and `merge_bytes` that is 0 no merge.
ShardMap::Balance EffectiveBalance(const ShardMap::Balance& balance);

}  // namespace nacre
