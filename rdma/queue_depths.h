#pragma once

#include "nacre/status.h"
#include "rdma/transport.h"

namespace nacre::rdma {

/// The greatest depth of either queue of a queue pair, on every transport.
inline constexpr int kMaxQueueDepth = 1 << 15;

/// `InvalidArgument` naming both unless a queue pair can have these depths.
Status CheckDepths(QueueDepths depths);

}  // namespace nacre::rdma
