#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pool/wire/versions.h"
#include "rdma/transport.h"
#include "table/format/placement.h"
#include "util/clock.h"

namespace nacre::pool {

/// Most node slots of one client, for as long as it lives. Each node that comes back without its
/// memory takes one.
inline constexpr size_t kMaxSlots = 4096;

/// Most nodes that are reached at a time: each has a lifeline.
inline constexpr size_t kMaxLifelines = 1024;

/// In the place of an instance id: the node is lost.
inline constexpr uint64_t kLostInstance = UINT64_MAX;

/// How many of `max_queue_pairs_per_node` are for streams; the rest is for point reads.
constexpr int StreamLimit(int max_queue_pairs_per_node) {
  constexpr int kMost = 8;
  if (max_queue_pairs_per_node == 0) return kMost;
  return std::clamp(max_queue_pairs_per_node / 4, 1, kMost);
}

struct PoolClientOptions {
  std::chrono::milliseconds operation_timeout{10'000};
  /// These three: as DBOptions has them.
  std::chrono::milliseconds slow_node_patience_min{4};
  std::chrono::milliseconds slow_node_patience_max{20};
  uint32_t hedged_reads_percent = 5;
  /// Slab size asked for; a node that was formatted with another one refuses. 0: any.
  uint64_t slab_bytes = 64 << 20;
  /// The node this client runs on, when a memory node uses it to reach its peers: no connection
  /// is made to it.
  NodeId self = kNoNode;
  /// Connect to every node at once: those that cannot be reached count as lost, and if none can,
  /// that is a failure. Else nodes are connected on first use.
  bool connect_all = true;
  /// Take nodes in that come back after they were lost, and those of AddNode.
  bool nodes_join = true;
  /// For nodes that join; at most kMaxSlots.
  size_t slots = kMaxSlots;
  /// As PoolOptions has it.
  int max_queue_pairs_per_node = 0;
  /// By node: the instance that must answer there; 0 or absent: any; kLostInstance: the node is
  /// lost, and not looked for. A node that was started anew counts as lost.
  std::vector<uint64_t> instance_ids;
  ProtocolSupport protocol{};  ///< What the client speaks and knows.
};

/// What all parts of one PoolClient share. Constant once the client is connected.
struct ClientContext {
  rdma::Device* device = nullptr;
  Clock* clock = nullptr;
  PoolClientOptions options;
  uint64_t client_id = 0;  ///< Drawn at random; tells this client's connections to the nodes.

  Deadline OperationDeadline() const { return Deadline::After(clock, options.operation_timeout); }
};

}  // namespace nacre::pool
