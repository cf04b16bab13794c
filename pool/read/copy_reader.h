#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "rdma/transport.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// Reads replicas of things that are no tables (logs, manifests) from end to end, with connections
/// of its own, which it keeps.
///
/// Thread safety: none. Outlives its CopyReads, which are used by one thread at a time with it.
class CopyReader {
 public:
  static Status Create(Fabric* fabric, std::unique_ptr<CopyReader>* reader);

  /// Reads `n` bytes from `offset` on of `copy`, in pieces of which several are under way at a
  /// time. `Unavailable` naming the node.
  Status Read(const ExtentAddr& copy, uint64_t offset, size_t n, char* to);

 private:
  friend class CopyRead;

  explicit CopyReader(std::unique_ptr<Lane> lane) : lane_(std::move(lane)) {}

  std::unique_ptr<Lane> lane_;
  uint64_t reads_ = 0;  ///< Started so far: the number of a read tells its completions.
};

/// A long read, so that what has arrived can be worked on while the rest travels. Of several reads
/// of one CopyReader, one has something under way at a time: see Pause.
class CopyRead {
 public:
  CopyRead() = default;
  /// Waits for what is under way.
  ~CopyRead() { Pause().IgnoreError(); }
  CopyRead(const CopyRead&) = delete;
  CopyRead& operator=(const CopyRead&) = delete;

  /// Begins to read `n` bytes from `offset` on of `copy`. `to` stays until this is destroyed, or
  /// started again.
  Status Start(CopyReader* reader, const ExtentAddr& copy, uint64_t offset, size_t n, char* to);
  /// Waits until the first `n` bytes are there, and has some more on their way then. After a
  /// failure, which names the node, no others will come.
  Status AwaitFirst(size_t n) {
    if (n <= arrived_) [[likely]]
      return Status::OK();
    return Await(n);
  }
  size_t arrived() const { return arrived_; }
  /// Waits for what is under way. AwaitFirst goes on.
  Status Pause();

 private:
  Status Await(size_t n);
  /// Asks for bytes up to `end`, as many as may be under way.
  Status Post(size_t end);
  Status TakeCompletions();
  Status WaitFor(size_t n);
  Status Fail(Status why);

  CopyReader* reader_ = nullptr;
  uint64_t number_ = 0;
  NodeLink* link_ = nullptr;
  rdma::QueuePair* queue_pair_ = nullptr;
  std::unique_ptr<rdma::MemoryRegion> region_;
  uint64_t offset_ = 0;  ///< In the node's region.
  char* to_ = nullptr;
  size_t size_ = 0;
  size_t posted_ = 0;   ///< Bytes asked for.
  size_t arrived_ = 0;  ///< Bytes that are there, from the first one on.
  int outstanding_ = 0;
  Status failure_;
};

/// One read, with a CopyReader for it.
Status ReadCopy(Fabric* fabric, const ExtentAddr& copy, uint64_t offset, size_t n, char* to);

}  // namespace nacre::pool
