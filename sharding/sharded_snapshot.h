#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nacre/db.h"

namespace nacre {

/// Snapshots of shards, of one moment. An application's is kept until it is released and the
/// iterators that it was given to are gone.
class ShardedSnapshot final : public Snapshot,
                              public std::enable_shared_from_this<ShardedSnapshot> {
 public:
  /// It has none of them yet.
  explicit ShardedSnapshot(size_t shards) : of_shards_(shards) {}

  uint64_t GetSequenceNumber() const override { return sequence_; }
  void Set(size_t index, const Snapshot* of_shard) {
    of_shards_[index] = of_shard;
    sequence_ += of_shard->GetSequenceNumber();
  }
  const Snapshot* of_shard(size_t index) const { return of_shards_[index]; }

  /// From here on an application has it, until Release.
  static const ShardedSnapshot* Keep(std::shared_ptr<ShardedSnapshot> snapshot) {
    ShardedSnapshot* const kept = snapshot.get();
    kept->kept_ = std::move(snapshot);
    return kept;
  }
  void Release() const { const std::shared_ptr<const ShardedSnapshot> last = std::move(kept_); }

 private:
  std::vector<const Snapshot*> of_shards_;
  uint64_t sequence_ = 0;
  mutable std::shared_ptr<const ShardedSnapshot> kept_;
};

}  // namespace nacre
