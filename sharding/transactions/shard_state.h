#pragma once

#include <memory>

#include "nacre/db.h"
#include "sharding/shard.h"

namespace nacre {

/// A state of one shard that stays readable.
struct ShardState {
  std::shared_ptr<Shard> shard{};
  std::shared_ptr<const Snapshot> snapshot{};  ///< One that `shard->db()` has.

  /// Whether the shard is still that of `now`, so that the snapshot can be there. A later view may
  /// have another object for what another member serves, which finds out itself.
  bool IsOf(const Shard& now) const {
    if (shard.get() == &now) return true;
    return shard->local() == nullptr && now.local() == nullptr && shard->id() == now.id() &&
           shard->owner()->id() == now.owner()->id();
  }
};

}  // namespace nacre
