#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/abandoned_writes.h"
#include "pool/connect/client_context.h"
#include "pool/connect/node_link.h"
#include "pool/connect/node_monitor.h"
#include "pool/connect/pool_pace.h"
#include "pool/wire/versions.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// The nodes of a pool, as the parts of a client share them. Each has a slot, whose number is its
/// NodeId: first the nodes in the order of the pool's URI, then those that joined later. A node
/// that is lost keeps its slot; when its address answers again, with or without its memory, that is
/// another node in a slot of its own. So what a NodeId names never changes.
///
/// Thread safety: set up by one thread; then all methods may be called from many threads at once.
struct Fabric {
  ClientContext context;
  /// By slot; null for those that are not taken. Only the monitor adds to them.
  std::vector<std::unique_ptr<NodeLink>> links;
  std::atomic<int> taken{0};                    ///< Slots. Release: pairs with node_count().
  std::atomic<uint64_t> membership_changes{0};  ///< Nodes that joined or were lost.
  std::atomic<uint64_t> hang_ups{0};            ///< Lifelines that this client has ended.
  std::atomic<uint32_t> connections_made{0};  ///< For data: their numbers. Relaxed: just distinct.
  AbandonedWrites abandoned_writes;
  PoolPace pace{this};
  std::unique_ptr<NodeMonitor> monitor;  ///< Ends before the links.

  ~Fabric() { monitor.reset(); }

  /// Features that are on in the pool, as far as this client knows them and has heard. They are
  /// never turned off, and every node that this client uses knows them: the monitor cuts off
  /// others.
  FeatureSet features_on() const { return features_on_.load(std::memory_order_acquire); }
  void HearFeatures(FeatureSet on);
  /// `Unavailable`, naming the node and the features, if `link` does not know all that are on.
  Status CheckFeatures(const NodeLink& link) const;

  size_t slots() const { return links.size(); }
  int node_count() const { return taken.load(std::memory_order_acquire); }
  /// Null for a node that the pool has not got.
  NodeLink* link(NodeId node) const { return node < node_count() ? links[node].get() : nullptr; }
  /// `Unavailable` if the pool has no such node.
  Status FindLink(NodeId node, NodeLink** link) const;
  /// The nodes that are alive, without the one that this client runs on.
  std::vector<NodeId> LiveNodes() const;
  /// `InvalidArgument` unless [offset, offset + length) lies in the region of a connected `link`.
  static Status CheckRange(const NodeLink* link, uint64_t offset, uint64_t length);

 private:
  /// Release: pairs with features_on(). What a thread has heard before it raised them is seen.
  std::atomic<FeatureSet> features_on_{0};
};

}  // namespace nacre::pool
