#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nacre/db.h"
#include "sharding/sharded_view.h"

namespace nacre {

/// Snapshots of the shards of a view, of one moment. An application's is kept until it is released
/// and the iterators that it was given to are gone.
class ShardedSnapshot final : public Snapshot,
                              public std::enable_shared_from_this<ShardedSnapshot> {
 public:
  /// It has none of them yet.
  explicit ShardedSnapshot(std::shared_ptr<const ShardedView> view)
      : view_(std::move(view)), of_shards_(view_->shards.size()) {}
  ~ShardedSnapshot() override {
    for (size_t i = 0; i < of_shards_.size(); ++i) {
      if (of_shards_[i] != nullptr) view_->shards[i]->db()->ReleaseSnapshot(of_shards_[i]);
    }
  }
  ShardedSnapshot(const ShardedSnapshot&) = delete;
  ShardedSnapshot& operator=(const ShardedSnapshot&) = delete;

  uint64_t GetSequenceNumber() const override { return sequence_; }
  const ShardedView& view() const { return *view_; }
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
  const std::shared_ptr<const ShardedView> view_;
  std::vector<const Snapshot*> of_shards_;
  uint64_t sequence_ = 0;
  mutable std::shared_ptr<const ShardedSnapshot> kept_;
};

/// Takes one of all shards of `view`. Fails as the shards' owners do (ShardOwner).
Status TakeSharedSnapshot(const std::shared_ptr<const ShardedView>& view, Deadline deadline,
                          std::shared_ptr<ShardedSnapshot>* snapshot);

}  // namespace nacre
