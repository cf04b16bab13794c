#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "pool/read/point_reader.h"
#include "rdma/transport.h"

namespace nacre::pool {

/// Posts point reads and learns how they end, with the memory that they land in: what
/// ClientSession, which waits for its reads, and AsyncReader, which never waits, have in common.
///
/// The reads of a node have numbers in the order in which they are posted, and end in that order. A
/// read whose number has ended has succeeded unless FailReads was told of it.
///
/// Thread safety: none; used by one thread at a time.
class PointLane {
 protected:
  /// One node, in one cache line. Its reads of a region in one piece take the short way.
  struct alignas(64) Target {
    rdma::QueuePair* queue_pair = nullptr;  ///< Null: not connected.
    uint64_t address = 0;                   ///< Address of the region's first byte.
    uint64_t limit = 0;                     ///< Bytes of the region; 0: go the long way.
    uint32_t key = 0;
    uint64_t posted = 0;  ///< Number of the last read.
    uint64_t ended = 0;   ///< The number up to which all reads have ended.
  };

  explicit PointLane(std::unique_ptr<Lane> lane) : lane_(std::move(lane)), queue_(lane_->queue()) {}
  ~PointLane() = default;
  PointLane(const PointLane&) = delete;
  PointLane& operator=(const PointLane&) = delete;

  /// The id of a read's requests is its number, then the node.
  static constexpr int kNodeBits = 16;
  static uint64_t IdOf(NodeId node, uint64_t number) { return number << kNodeBits | node; }

  /// All reads of `node` that are posted from number `first` on have failed; those before it have
  /// succeeded. Called by whichever method below finds it out.
  virtual void FailReads(NodeId node, uint64_t first, const Status& why) = 0;

  /// Other memory to land in, with nothing under way.
  Status AllocateLanding(size_t bytes);
  /// Connects to the node if need be, which may take time; unless it is `patient`, only as long as
  /// a connection usually does (`TimedOut`). What is under way on a connection that has broken
  /// fails. `InvalidArgument` if the pool has no such node.
  Status Connect(NodeId node, bool patient);
  /// Posts the read of a node that was connected, whose range was checked, to land at `landing`;
  /// `*number` is its number. The `last` of those that are posted together rings the doorbell, and
  /// reports for all. If it cannot be posted it fails, with what was posted before.
  void PostRead(const PointRead& read, char* landing, bool last, uint64_t* number);
  /// Takes some completions, as many as it says, and tells `ended` the node of each.
  template <typename Ended>
  int Poll(const Ended& ended) {
    rdma::Completion completions[16];
    const int count = queue_->Poll(completions, 16);
    for (int i = 0; i < count; ++i) {
      Take(completions[i]);
      ended(static_cast<NodeId>(completions[i].id & ((uint64_t{1} << kNodeBits) - 1)));
    }
    return count;
  }
  void Take(const rdma::Completion& completion);
  /// Gives the node's connection up, with all that is under way there; `backs_off` as Lane::Discard
  /// has it.
  void GiveUp(NodeId node, const Status& why, bool backs_off = true);
  /// The same since a read has not ended in the time that an operation may take.
  void GiveUpLate(NodeId node);

  Fabric& fabric() const { return *lane_->fabric(); }
  bool HasEnded(NodeId node, uint64_t number) const { return number <= targets_[node].ended; }

  std::unique_ptr<rdma::MemoryRegion> landing_;  ///< Outlives the lane's queue pairs.
  std::unique_ptr<Lane> lane_;
  rdma::CompletionQueue* const queue_;
  std::vector<Target> targets_;  ///< By node, as far as was needed.
};

}  // namespace nacre::pool
