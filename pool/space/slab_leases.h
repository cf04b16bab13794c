#pragma once

#include <cstdint>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/node_requests.h"
#include "pool/pool_client.h"
#include "table/format/placement.h"

namespace nacre::pool {

// Leases of slabs, with the keys to write into them, which come and go with the lease. Failures
// name the node; any thread may call.

/// How the slabs of a lease should lie.
struct SlabsWanted {
  int count = 1;
  bool contiguous = false;
  /// Above 0: rather this many slabs from `extend_at` on, if they are free: they join the free end
  /// of a slab that the caller has.
  int extend_count = 0;
  uint64_t extend_at = 0;
};

/// Leases slabs of `node` for `database_id`. Offsets of the slabs in the node's region. `NoSpace`
/// if there are not that many. Without a lease, or after its end, this client cannot write there.
Status LeaseSlabs(PoolClient* client, NodeId node, uint64_t database_id, const SlabsWanted& wanted,
                  std::vector<uint64_t>* offsets);
Status ReturnSlabs(PoolClient* client, NodeId node, uint64_t database_id,
                   const std::vector<uint64_t>& offsets,
                   NodeRequests::Late late = NodeRequests::Late::kAwaited);

}  // namespace nacre::pool
