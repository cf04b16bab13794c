#pragma once

#include <cstddef>
#include <cstdint>

#include "ctl/top/pool_sample.h"
#include "ctl/top/top_line.h"
#include "pool/wire/node_stats.h"

namespace nacre::ctl {

/// Requests and jobs that the node was at, but for the request that asked.
uint64_t UnderWay(const pool::NodeStats& stats);

/// The nodes: state, memory, traffic, jobs. What is less important is given up in narrow ones, in
/// this order: connections, requests under way, the failure domain, ping, jobs and their
/// processors, bytes of memory, the bar, requests, traffic. Address, state and percentage stay.
TopSection NodeSection(const PoolSample& sample, size_t width, TopOrder order);

}  // namespace nacre::ctl
