#pragma once

#include <cstdint>

#include "pool/pool_client.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// The process that serves a node's memory, as `client` reached it last: a number drawn when it
/// starts. 0 as long as the node was never connected. A node whose memory outlives its process has
/// one instance id (PoolClient::instance_id), and a number for each start. Any thread.
uint32_t StartOf(const PoolClient& client, NodeId node);

}  // namespace nacre::pool
