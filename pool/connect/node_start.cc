#include "pool/connect/node_start.h"

#include "pool/connect/lane.h"
#include "pool/connect/node_link.h"

namespace nacre::pool {

uint32_t StartOf(const PoolClient& client, NodeId node) {
  const NodeLink* link = client.fabric()->link(node);
  return link == nullptr ? 0 : link->start_id();
}

}  // namespace nacre::pool
