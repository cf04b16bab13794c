#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "sharding/shard_owner.h"
#include "sharding/snapshots/snapshot_gate.h"

namespace nacre {

/// This process, as an owner of shards.
///
/// Thread safety: as ShardOwner.
class LocalOwner final : public ShardOwner {
 public:
  explicit LocalOwner(int64_t id) : id_(id) {}

  int64_t id() const override { return id_.load(std::memory_order_acquire); }
  /// It has become a member anew. What waits in the order of the earlier ids meanwhile ends by its
  /// deadline.
  void SetId(int64_t id) { id_.store(id, std::memory_order_release); }
  Status CloseGate(Deadline deadline, Token* token) override;
  Status StopOperations(Token token) override;
  Status TakeSnapshots(Token token, const std::vector<Shard*>& shards,
                       std::vector<const Snapshot*>* snapshots) override;
  void OpenGate(Token token) override { gate_.Open(token); }

  SnapshotGate* gate() { return &gate_; }

 private:
  std::atomic<int64_t> id_;  ///< Release: what the member serves is there.
  SnapshotGate gate_;
};

}  // namespace nacre
