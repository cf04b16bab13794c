#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nacre/db.h"

namespace nacre {

/// Snapshots of shards, of one moment.
class ShardedSnapshot final : public Snapshot {
 public:
  /// It has none of them yet.
  explicit ShardedSnapshot(size_t shards) : of_shards_(shards) {}

  uint64_t GetSequenceNumber() const override { return sequence_; }
  void Set(size_t index, const Snapshot* of_shard) {
    of_shards_[index] = of_shard;
    sequence_ += of_shard->GetSequenceNumber();
  }
  /// Null if it has none of that shard.
  const Snapshot* of_shard(size_t index) const { return of_shards_[index]; }

 private:
  std::vector<const Snapshot*> of_shards_;
  uint64_t sequence_ = 0;
};

}  // namespace nacre
