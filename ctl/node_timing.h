#pragma once

#include <chrono>
#include <vector>

#include "nacre/status.h"
#include "pool/pool_client.h"
#include "table/format/placement.h"

namespace nacre::ctl {

/// How long small operations took on one node, as this machine saw it.
struct NodeTiming {
  using nanoseconds = std::chrono::nanoseconds;

  std::vector<nanoseconds> reads;  ///< One-sided ones of a few bytes, sorted.
  std::vector<nanoseconds> pings;  ///< Requests that ask for nothing, sorted.

  bool empty() const { return reads.empty() || pings.empty(); }
};

/// The time within which `share` (0 to 1) of the operations ended; `sorted` has one at least.
std::chrono::nanoseconds Within(const std::vector<std::chrono::nanoseconds>& sorted, double share);

/// Sends a hundred small reads and as many pings to `node`, one after the other, for half a second
/// at most, and tells the client's pace what they took. `Unavailable` or `TimedOut` if the node
/// does not answer within the time of one operation. Any thread may call.
Status TimeNode(pool::PoolClient* client, NodeId node, NodeTiming* timing);

/// Whether half of the reads or pings took longer than an owner of a database would wait for one
/// with patience, given what TimeNode has seen of all nodes (pool/connect/pool_pace.h).
bool IsSlow(pool::PoolClient* client, const NodeTiming& timing);

}  // namespace nacre::ctl
