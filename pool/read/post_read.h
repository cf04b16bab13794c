#pragma once

#include <cstdint>

#include "nacre/status.h"
#include "pool/connect/node_link.h"
#include "pool/read/point_reader.h"
#include "rdma/transport.h"

namespace nacre::pool {

/// Posts the read of a range that lies in the node's region, to land at `landing`, which is part of
/// `region`: in as many requests as it takes pieces, all with `id`. The `last` of those that are
/// posted together rings the doorbell, and reports for all.
Status PostPointRead(const PointRead& read, const NodeLink& link, rdma::QueuePair* queue_pair,
                     uint64_t id, char* landing, const rdma::MemoryRegion* region, bool last);

}  // namespace nacre::pool
