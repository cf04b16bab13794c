#include "memnode/node_start.h"

#include "memnode/lane.h"
#include "memnode/node_link.h"

namespace nacre::memnode {

uint32_t StartOf(const PoolClient& client, NodeId node) {
  const NodeLink* link = client.fabric()->link(node);
  return link == nullptr ? 0 : link->start_id();
}

}  // namespace nacre::memnode
