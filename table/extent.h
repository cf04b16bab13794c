#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// Bytes that are on their way. Destroying it before Await is allowed and safe: the buffer is
/// given back when the transport has let go of it.
class PendingRead {
 public:
  virtual ~PendingRead() = default;
  /// Blocks until the bytes are there; idempotent. `*bytes` stays valid until destruction.
  /// `Unavailable` or `TimedOut` when the nodes that hold them do not answer.
  virtual Status Await(Slice* bytes) = 0;
};

/// The readable bytes of one finished table (without fragment heads), wherever they lie: in a
/// memory node's own region, on remote nodes, in a test's string. Immutable.
/// Thread safety: all methods may be called from many threads at once.
class Extent {
 public:
  virtual ~Extent() = default;
  /// Bytes of the table.
  virtual uint64_t size() const = 0;
  /// The bytes in place when they are contiguous in local memory, else null.
  virtual const char* InPlace() const { return nullptr; }
  /// Starts to fetch [offset, offset + n), within the table.
  virtual std::unique_ptr<PendingRead> StartRead(uint64_t offset, size_t n) = 0;
};

/// Where a table under construction goes: a bounded set of registered chunk buffers, written out
/// in the background as they are committed, first in, first out.
/// Thread safety: none; one builder uses it.
class ExtentWriter {
 public:
  virtual ~ExtentWriter() = default;

  /// Bytes of a chunk buffer; every chunk but the last is committed full.
  virtual size_t chunk_size() const = 0;
  /// Most table bytes that fit.
  virtual uint64_t capacity() const = 0;
  /// A buffer of chunk_size() bytes for the next chunk (contents unspecified). Waits for an
  /// earlier one to be written out when all are in flight.
  virtual Status NextChunk(char** buffer) = 0;
  /// Hands the buffer of the last NextChunk over; `n` = chunk_size() save for the last chunk.
  virtual Status Commit(size_t n) = 0;
  /// Writes `head` (at most kFragmentHeadBytes) to the head of each fragment and checksums to its
  /// tail, then waits until every byte is acknowledged by every node. After a failure of any call
  /// the table does not exist and the space may be reused.
  virtual Status Finish(const Slice& head) = 0;
};

}  // namespace nacre
