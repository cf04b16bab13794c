#pragma once

#include <cstdint>
#include <memory>

#include "nacre/iterator.h"
#include "nacre/options.h"
#include "sharding/remote/remote_owner.h"

namespace nacre {

/// What a RemoteIterator reads, and at which state.
struct RemoteScan {
  uint32_t shard = 0;
  uint32_t family = 0;  ///< Its id in the keyspace.
  uint64_t snapshot = 0;
  bool owns_snapshot = false;  ///< It is released with the iterator.
};

/// One over a family of a shard that another member serves. It fetches growing pieces in the
/// direction of travel. Prefixes are the caller's concern. `Aborted` once the shard has moved.
std::unique_ptr<Iterator> NewRemoteIterator(const ReadOptions& options, const RemoteScan& scan,
                                            std::shared_ptr<RemoteOwner> owner);

}  // namespace nacre
