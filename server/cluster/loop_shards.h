#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "nacre/async.h"
#include "nacre/status.h"
#include "server/loop/event_loop.h"
#include "server/loop/worker_pool.h"
#include "server/store/slots.h"
#include "server/store/store.h"

namespace nacre::server {

/// The shards that this server has of a cluster, as one loop reaches them. Each loop has a table of
/// its own, so that a command finds its shard without a lock.
///
/// Thread safety: code of the loop only.
class LoopShards {
 public:
  /// A shard. What uses it holds a Use, through which it stays.
  struct Shard {
    uint32_t id = 0;
    SlotRange slots;
    StoreAccess access;
    std::unique_ptr<AsyncDB> async;
    size_t uses = 0;
    std::function<void()> left;  ///< Called once nothing uses it any more; null: it is served.
  };

  /// Keeps a shard from leaving.
  class Use {
   public:
    explicit Use(Shard* shard) : shard_(shard) { ++shard_->uses; }
    Use(Use&& other) noexcept : shard_(std::exchange(other.shard_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (shard_ != nullptr && --shard_->uses == 0 && shard_->left != nullptr) shard_->left();
    }
    Shard* shard() const { return shard_; }

   private:
    Shard* shard_;
  };

  /// Stands for all shards, as they are read from the memory nodes (SetReader).
  static constexpr uint32_t kReader = UINT32_MAX;

  LoopShards(EventLoop* loop, WorkerPool* workers) : loop_(loop), workers_(workers) {}

  /// Serves the shard from here on, whose `store` outlives it. Fails as DB::NewAsyncDB does.
  Status Add(uint32_t id, Store* store);
  /// The same for reads of shards that other servers have, from `store`, as they were a moment ago.
  Status SetReader(Store* store);
  /// Begins nothing on the shard any more, and calls `left` once nothing uses it, and it is gone
  /// here.
  void Remove(uint32_t id, std::function<void()> left);

  /// The shard that has the slot; null if it is not served here, or is leaving.
  Shard* Find(uint32_t slot) const;
  /// What SetReader has set; or null.
  Shard* reader() const;
  /// Those that are served, in the order of their slots.
  std::vector<Shard*> All() const;

 private:
  Status Make(uint32_t id, Store* store, Shard** shard);

  EventLoop* const loop_;
  WorkerPool* const workers_;
  std::map<uint32_t, std::unique_ptr<Shard>> shards_;  ///< By id, also while they leave.
  std::map<uint32_t, Shard*> by_first_slot_;           ///< Those that are served.
};

}  // namespace nacre::server
