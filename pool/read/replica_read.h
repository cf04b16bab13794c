#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "nacre/status.h"
#include "pool/read/pool_reader.h"
#include "rdma/transport.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// A long read of a replica (of a log segment, or the manifest) into the caller's memory, in pieces
/// of which several are under way at a time: what has arrived can be worked on while the rest
/// travels.
///
/// Thread safety: none; used by one thread at a time, with its reader.
class ReplicaRead {
 public:
  ReplicaRead() = default;
  /// Waits for what is under way.
  ~ReplicaRead() { AwaitPosted().IgnoreError(); }
  ReplicaRead(const ReplicaRead&) = delete;
  ReplicaRead& operator=(const ReplicaRead&) = delete;

  /// Begins to read `n` bytes from `offset` on of `replica`, and waits for what was read before.
  /// `to` stays until this is destroyed, or started again. `InvalidArgument` if the replica has not
  /// got them; `Unavailable` if its node cannot be reached.
  Status Start(PoolReader* reader, const ExtentAddr& replica, uint64_t offset, size_t n, char* to);
  /// Waits until the first `n` bytes are there, and has some more on their way then. After a
  /// failure, which is one of RemoteStream, no others will come.
  Status AwaitFirst(size_t n) {
    if (n <= arrived_) [[likely]]
      return Status::OK();
    return Await(n);
  }
  size_t arrived() const { return arrived_; }
  /// Waits for what is under way, and asks for nothing more. AwaitFirst goes on.
  Status AwaitPosted();

 private:
  Status Await(size_t n);
  /// Asks for as many pieces as may be under way.
  void Post();
  /// Waits for the oldest piece.
  Status Take();

  PoolReader* reader_ = nullptr;
  std::unique_ptr<rdma::MemoryRegion> region_;
  NodeId node_ = kNoNode;
  uint64_t offset_ = 0;  ///< In the node's region.
  char* to_ = nullptr;
  size_t size_ = 0;
  size_t posted_ = 0;   ///< Bytes asked for.
  size_t arrived_ = 0;  ///< Bytes that are there, from the first one on.
  std::deque<std::shared_ptr<StreamRead>> pieces_;  ///< Under way.
  Status failure_;
};

}  // namespace nacre::pool
