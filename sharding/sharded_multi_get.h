#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "db/read/lookup_batch.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "sharding/local_shard.h"
#include "sharding/sharded_family.h"
#include "sharding/snapshots/sharded_snapshot.h"

namespace nacre {

/// One MultiGet of keys of several shards, in a snapshot. What shards of this process have is
/// looked up together, as the keys of one database are, so that memory and nodes answer for one
/// shard while others are asked. Other members are asked one after the other.
///
/// Thread safety: none.
class ShardedMultiGet {
 public:
  /// All of it outlives this. `values` are empty; there is one, and a status, for each key.
  ShardedMultiGet(const ReadOptions& options, const ShardedSnapshot& snapshot,
                  const ShardedFamily& family, std::span<const Slice> keys, PinnableSlice* values,
                  Status* statuses);

  /// What is not a key's own failure: `Aborted` if a shard has moved since the snapshot was taken.
  Status Run();

 private:
  /// What is asked of one shard.
  struct Part {
    size_t shard = 0;
    ReadOptions options{};
    const LookupContext* context = nullptr;
  };

  Shard* ShardOf(const Part& part) const { return snapshot_.view().shards[part.shard].get(); }
  KeySets KeysIn(size_t part) const;
  Status ReadRemote(size_t part);
  /// Looks up the keys of all local parts, within reads of those from `next` on.
  Status ReadLocal(std::span<const size_t> parts, size_t next);
  void LookUp(std::span<const size_t> parts);

  const ShardedSnapshot& snapshot_;
  const ShardedFamily& family_;
  const std::span<const Slice> keys_;
  PinnableSlice* const values_;
  Status* const statuses_;
  std::vector<Part> parts_;
  std::vector<uint32_t> part_of_;  ///< Each key's.
};

}  // namespace nacre
