#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/connect/fabric.h"
#include "pool/read/buffer_pool.h"
#include "pool/read/remote_stream.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// Bytes of one node's region.
struct NodeRange {
  NodeId node = kNoNode;
  uint64_t offset = 0;
  size_t length = 0;  ///< More than 0, and at most a few megabytes.
};

/// `length` bytes of `extent` from `offset` on.
inline NodeRange RangeOf(const ExtentAddr& extent, uint64_t offset, size_t length) {
  return {.node = static_cast<NodeId>(extent.start.node),
          .offset = extent.start.offset + offset,
          .length = length};
}

/// Reads the nodes' memory for a caller that waits, with connections of its own, which it keeps: a
/// bounded number of pieces at a time.
///
/// Thread safety: none; used by one thread at a time, with its ReplicaReads, which it outlives.
class PoolReader {
 public:
  /// `fabric` outlives the reader.
  static Status Open(Fabric* fabric, std::unique_ptr<PoolReader>* reader);

  /// Told of each range in their order: its index, and its bytes or, if they could not be read,
  /// why, as RemoteStream has it. The bytes are valid during the call.
  using Visitor = std::function<void(size_t, const Status&, const Slice&)>;
  void ReadEach(std::span<const NodeRange> ranges, const Visitor& visit);
  /// One range, to `to`.
  Status Read(const NodeRange& range, char* to);
  /// `n` bytes, as many as there are, of `extent` from `offset` on: see ReplicaRead.
  Status Read(const ExtentAddr& extent, uint64_t offset, size_t n, char* to);

  uint64_t bytes_read() const { return bytes_read_; }

 private:
  friend class ReplicaRead;

  explicit PoolReader(Fabric* fabric);

  Fabric* const fabric_;
  BufferPool buffers_;
  std::unique_ptr<RemoteStream> stream_;  ///< Ends before the buffers.
  uint64_t bytes_read_ = 0;
};

}  // namespace nacre::pool
