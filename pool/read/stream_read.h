#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nacre/status.h"
#include "pool/read/buffer_pool.h"
#include "rdma/transport.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// A read in flight, into a buffer of its own or into memory of the caller's. The waiter shares it
/// with the stream that carries it, so that either may be gone first.
class StreamRead {
 public:
  /// Where the bytes are, unless they went into memory of the caller's.
  Buffer& buffer() { return buffer_; }
  /// Acquire: pairs with the stream's release, so that status and bytes may be looked at.
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Once done. Of several failures, the first.
  const Status& status() const { return status_; }
  /// Once done: the nodes that failed it.
  const std::vector<NodeId>& failed() const { return failed_; }

 private:
  friend class RemoteStream;
  Buffer buffer_;
  char* to_ = nullptr;  ///< Where the bytes go, which `region_` has registered.
  const rdma::MemoryRegion* region_ = nullptr;
  std::vector<NodeId> failed_;
  size_t bytes_ = 0;      ///< Size of the buffer.
  bool carried_ = false;  ///< A ReadCarrier has taken it.
  bool patient_ = true;   ///< It waits for connections to slow nodes.
  int parts_ = 1;  ///< Requests not completed, and one while they are posted; under the stream's
                   ///< mutex, as is status_ until done.
  Status status_;
  std::atomic<bool> done_{false};
};

/// What one node gives of a read.
struct StreamPart {
  NodeId node = kNoNode;
  uint64_t offset = 0;  ///< In the node's region.
  size_t length = 0;    ///< More than 0.
  size_t at = 0;        ///< Where in the buffer it goes.
};

}  // namespace nacre::pool
