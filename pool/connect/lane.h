#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/fabric.h"
#include "rdma/transport.h"

namespace nacre::pool {

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

  /// The queue pair to `link`, if there is one in working order; connects if need be, in the place
  /// of one that has broken, too: nothing is outstanding on such a one any more (see Discard).
  /// `Unavailable` naming the node, soon, when it is down or was not reached a moment ago.
  ///
  /// A node that does not take the connection in time counts as slow from then on. It is waited for
  /// all the same, as what is to be read may be nowhere else; or, with `kLeft`, is `Unavailable`,
  /// where what is to be written may go to another one, unless too many others are slow. A caller
  /// that chose a slow node knowingly awaits it; one that needs any of several nodes gives one up
  /// that is late, whatever the others do (`TimedOut`).
  enum class Late : uint8_t { kAwaited, kLeft, kGivenUp };
  Status Get(NodeLink* link, rdma::QueuePair** queue_pair, Late late = Late::kAwaited);
  /// Null if there is none.
  rdma::QueuePair* GetConnected(NodeId node) const {
    return node < peers_.size() ? peers_[node].queue_pair.get() : nullptr;
  }

  /// Gives the queue pair up, with all that is outstanding on it: from here on the transport
  /// does not touch the buffers any more. Completions of it may still be in the queue; a caller
  /// tells them by their ids. `why` is what happened to it; unless the lane `backs_off`, for which
  /// Get answers it for a while, another one may be made at once.
  void Discard(NodeLink* link, const Status& why, bool backs_off = true);
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
  /// `*left`: the node was late.
  Status Connect(NodeLink* link, Peer* peer, Late late, bool* left);

  Fabric* const fabric_;
  std::unique_ptr<rdma::CompletionQueue> queue_;
  std::vector<Peer> peers_;  ///< By node, as far as was needed. Destroyed before the queue.
};

}  // namespace nacre::pool
