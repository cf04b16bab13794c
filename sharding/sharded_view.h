#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sharding/shard.h"
#include "sharding/shard_map.h"
#include "util/mutex.h"
#include "util/threads/epoch.h"

namespace nacre {

/// The shards of a keyspace as this process knows them at a moment. A value that does not change.
struct ShardedView {
  ShardMap map;
  std::vector<std::shared_ptr<Shard>> shards;  ///< In the map's order.

  /// The shard of this id; null if there is none.
  Shard* Find(uint32_t id) const {
    for (const auto& shard : shards) {
      if (shard->id() == id) return shard.get();
    }
    return nullptr;
  }
  /// The shard that knows what shard `id`, which there is or was, has decided; null if none does.
  Shard* FindDecider(uint32_t id) const {
    const size_t index = map.IndexOfDecider(id);
    return index == map.size() ? nullptr : shards[index].get();
  }
};

/// The latest view, which changes while operations use earlier ones.
///
/// Thread safety: all methods may be called from many threads at once; Publish by one at a time.
class ShardedViews {
 public:
  ShardedViews() { pins_.PrepareToReclaim(); }

  /// While it lives, so does the view that it answers.
  class Pin {
   public:
    explicit Pin(ShardedViews* views)
        : guard_(&views->pins_), view_(views->published_.load(std::memory_order_acquire)) {}
    const ShardedView& operator*() const { return *view_; }
    const ShardedView* operator->() const { return view_; }

   private:
    const EpochDomain::Guard guard_;
    const ShardedView* const view_;
  };

  std::shared_ptr<const ShardedView> latest() const EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return latest_;
  }

  /// From here on, or no more, shards may leave whose successors are in a later view only.
  void SetInFlux(bool in_flux) { in_flux_.store(in_flux); }
  /// Whether what a shard of this view answered `Fenced` to may be done with a later view.
  bool MayChange(const ShardedView& view) const EXCLUDES(mutex_) {
    return in_flux_.load() || latest()->map.version() != view.map.version();
  }

  /// The shards of the latest view, with another map.
  void PublishMap(const ShardMap& map) EXCLUDES(mutex_) {
    auto view = std::make_shared<ShardedView>(*latest());
    view->map = map;
    Publish(std::move(view));
  }
  void Publish(std::shared_ptr<const ShardedView> view) EXCLUDES(mutex_) {
    std::shared_ptr<const ShardedView> before;
    {
      MutexLock lock(&mutex_);
      before = std::exchange(latest_, std::move(view));
      published_.store(latest_.get(), std::memory_order_release);
    }
    if (before != nullptr) pins_.Retire([before] {});
  }

 private:
  EpochDomain pins_;
  std::atomic<const ShardedView*> published_{nullptr};
  std::atomic<bool> in_flux_{false};
  mutable Mutex mutex_;
  std::shared_ptr<const ShardedView> latest_ GUARDED_BY(mutex_);
};

}  // namespace nacre
