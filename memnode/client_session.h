#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memnode/lane.h"
#include "memnode/pool_client.h"
#include "nacre/status.h"
#include "rdma/transport.h"

namespace nacre::memnode {

/// What one thread reads point by point with: a lane, and the registered memory that the bytes
/// land in.
///
/// Thread safety: none; it belongs to one thread at a time.
class ClientSession {
 public:
  static Status Create(Fabric* fabric, std::unique_ptr<ClientSession>* session);

  /// See PoolClient::ReadAll.
  void ReadAll(std::span<PointRead> reads) {
    if (reads.size() == 1 && ReadOne(&reads[0])) [[likely]]
      return;
    ReadMany(reads);
  }

 private:
  /// What a read of a node that is connected needs, side by side. All zero: not connected, or of
  /// more than one piece; then the long way is taken.
  struct Target {
    rdma::QueuePair* queue_pair = nullptr;
    uint64_t address = 0;  ///< Of the region's first byte.
    uint64_t limit = 0;    ///< Bytes of the region.
    uint32_t key = 0;
  };
  struct Window;

  /// Reads posted before any is waited for; as many fit the queue of one node.
  static constexpr size_t kWindow = 128;
  static_assert(2 * kWindow <= Lane::kDepth);  // A read may straddle two pieces.
  static constexpr size_t kLandingBytes = 64 << 10;
  /// Landing memory beyond this is given back by the next call that needs less.
  static constexpr size_t kMaxKeptLandingBytes = 4 << 20;
  static constexpr uint64_t kIndexBits = 16;

  explicit ClientSession(std::unique_ptr<Lane> lane)
      : lane_(std::move(lane)), targets_(lane_->fabric()->links.size()) {}

  /// The one read that most calls are. False: nothing has happened, go the long way.
  bool ReadOne(PointRead* read);
  void ReadMany(std::span<PointRead> reads);
  void ReadWindow(std::span<PointRead> reads, char* landing);
  Status Prepare(const PointRead& read, NodeLink** link);
  Status Post(const PointRead& read, const NodeLink& link, uint64_t id, char* landing, bool last);
  void Await(Window* window);
  void TakeCompletion(const rdma::Completion& completion, Window* window);
  /// Ends all reads of `node` from number `first` on.
  void FailNode(Window* window, NodeId node, size_t first, const Status& why);
  Status EnsureLanding(size_t bytes);

  std::unique_ptr<rdma::MemoryRegion> landing_;  ///< Outlives the lane's queue pairs.
  char* landing_data_ = nullptr;
  size_t landing_bytes_ = 0;
  rdma::CompletionQueue* queue_ = nullptr;
  uint64_t window_number_ = 0;  ///< In the ids of requests, above the read's index.
  std::unique_ptr<Lane> lane_;
  std::vector<Target> targets_;
};

}  // namespace nacre::memnode
