#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/abandoned_writes.h"
#include "pool/connect/node_link.h"
#include "pool/connect/node_monitor.h"
#include "rdma/transport.h"

namespace nacre::pool {

/// Most of them whose nodes are reached at a time.
inline constexpr size_t kMaxLifelines = 1024;

/// The nodes of a pool, as the parts of a client share them. Each has a slot, whose number is its
/// NodeId: first the nodes in the order of the pool's URI, then those that joined later. A node
/// that is lost keeps its slot; when its address answers again, with or without its memory, that is
/// another node in a slot of its own. So what a NodeId names never changes.
struct Fabric {
  ClientContext context;
  /// By slot; null for those that are not taken. Only the monitor adds to them.
  std::vector<std::unique_ptr<NodeLink>> links;
  std::atomic<int> taken{0};                    ///< Slots. Release: pairs with node_count().
  std::atomic<uint64_t> membership_changes{0};  ///< Nodes that joined or were lost.
  std::atomic<uint64_t> hang_ups{0};            ///< Lifelines that this client has ended.
  std::atomic<uint32_t> connections_made{0};  ///< For data: their numbers. Relaxed: just distinct.
  AbandonedWrites abandoned_writes;
  std::unique_ptr<NodeMonitor> monitor;  ///< Ends before the links.

  ~Fabric() { monitor.reset(); }

  size_t slots() const { return links.size(); }
  int node_count() const { return taken.load(std::memory_order_acquire); }
  /// Null for a node that the pool has not got.
  NodeLink* link(NodeId node) const { return node < node_count() ? links[node].get() : nullptr; }
  /// `InvalidArgument` unless [offset, offset + length) lies in the region of a connected `link`.
  static Status CheckRange(const NodeLink* link, uint64_t offset, uint64_t length);
};

/// A completion queue with a data queue pair to each node, connected on first use. Point reads,
/// streams and writers each have lanes of their own.
///
/// Thread safety: none; used by one thread at a time.
class Lane {
 public:
  /// Requests outstanding for one node.
  static constexpr int kDepth = 256;

  /// `nodes_at_once`: for how many nodes requests may be outstanding at a time.
  static Status Create(Fabric* fabric, int nodes_at_once, std::unique_ptr<Lane>* lane);

  /// The queue pair to `link`, if there is one in working order; connects if need be.
  /// `Unavailable` naming the node, soon, when it is down or was not reached a moment ago.
  Status Get(NodeLink* link, rdma::QueuePair** queue_pair);
  /// Null if there is none.
  rdma::QueuePair* GetConnected(NodeId node) const {
    return node < peers_.size() ? peers_[node].queue_pair.get() : nullptr;
  }

  /// Gives the queue pair up, with all that is outstanding on it: from here on the transport
  /// does not touch the buffers any more. Completions of it may still be in the queue; a caller
  /// tells them by their ids. `why` is what happened to it.
  void Discard(NodeLink* link, const Status& why);
  /// The same for a queue pair on which writes are outstanding: they may still be stored, which the
  /// fabric's AbandonedWrites tell. Before the space that they were for is freed.
  void AbandonWrites(NodeLink* link, const Status& why);
  /// The same for all queue pairs of the lane.
  void AbandonAllWrites(const Status& why);

  rdma::CompletionQueue* queue() const { return queue_.get(); }
  Fabric* fabric() const { return fabric_; }

 private:
  struct Peer {
    std::unique_ptr<rdma::QueuePair> queue_pair;
    uint32_t connection = 0;  ///< Its number.
    uint64_t retry_at_nanos = 0;
    uint64_t back_off_nanos = 0;
    Status last_failure;
  };

  explicit Lane(Fabric* fabric) : fabric_(fabric) {}

  Peer& PeerOf(const NodeLink& link);

  Fabric* const fabric_;
  std::unique_ptr<rdma::CompletionQueue> queue_;
  std::vector<Peer> peers_;  ///< By node, as far as was needed. Destroyed before the queue.
};

}  // namespace nacre::pool
