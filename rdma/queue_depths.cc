#include "rdma/queue_depths.h"

#include <string>

namespace nacre::rdma {

Status CheckDepths(QueueDepths depths) {
  if (depths.send >= 1 && depths.send <= kMaxQueueDepth && depths.receive >= 0 &&
      depths.receive <= kMaxQueueDepth) {
    return Status::OK();
  }
  return Status::InvalidArgument("queue depths " + std::to_string(depths.send) + " and " +
                                 std::to_string(depths.receive) + ": at most " +
                                 std::to_string(kMaxQueueDepth) + " each, and at least 1 to send");
}

}  // namespace nacre::rdma
