#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "util/codes/reed_solomon.h"
#include "util/memory/loadable_memory.h"

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

/// Bytes [begin, end) of a table that lie in a row in memory that this process can load.
struct LoadableBytes {
  /// `length` bytes from `offset` on, or as many as lie in this row: what follows in memory is not
  /// what follows in the table.
  Slice From(uint64_t offset, uint64_t length) const {
    return {data + (offset - begin), std::min(length, end - offset)};
  }

  const char* data = nullptr;  ///< The byte at `begin`; null: there are none.
  uint64_t begin = 0;
  uint64_t end = 0;
  const LoadableMemory* memory = nullptr;  ///< Lives as long as the extent.
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
  /// The bytes around `offset` (< size()) as far as they can be loaded without asking a node; none
  /// if they have to be read.
  virtual LoadableBytes Loadable(uint64_t /*offset*/) { return {}; }
  /// Starts to fetch [offset, offset + n), within the table.
  virtual std::unique_ptr<PendingRead> StartRead(uint64_t offset, size_t n) = 0;

  /// As StartRead, of bytes that are needed later: another thread may do the work of the transfer.
  virtual std::unique_ptr<PendingRead> StartReadAhead(uint64_t offset, size_t n) {
    return StartRead(offset, n);
  }

  /// Must be called by a reader that found [offset, offset + n) damaged. Finds out which chunks are
  /// damaged, so that reads that start from now on take other fragments instead. Returns the names
  /// of the nodes that hold them; empty if no damage is found, so that reading again is of no use.
  /// Unless `again`, damage known before is not looked for. Blocks (DamagedRead below).
  virtual std::string FindDamage(uint64_t /*offset*/, size_t /*n*/, bool /*again*/) { return {}; }
  /// Fragments of which something is known to be damaged: found here, or reported.
  virtual FragmentSet damaged() const { return 0; }
  virtual void ReportDamage(FragmentSet /*fragments*/) {}
  /// The same of their chunks number `chunk`.
  virtual void ReportDamage(FragmentSet /*fragments*/, uint64_t /*chunk*/) {}
  /// `moved`, the same table with some fragments in other places, takes the place of this: it is
  /// told of damage in the `kept` ones, that which is known and that which is found here later, as
  /// reads and scrubbing of this may go on. Called once.
  virtual void PassDamageTo(std::shared_ptr<Extent> /*moved*/, FragmentSet /*kept*/) {}
};

/// Tries again at bytes that came damaged, a few times:
///
///     for (DamagedRead damage;;) {
///       read [offset, offset + n)...
///       if (the bytes match their checksum) return them;
///       if (!damage.ReadAgain(extent, offset, n)) return Corruption, naming damage.nodes();
///     }
class DamagedRead {
 public:
  bool ReadAgain(Extent* extent, uint64_t offset, size_t n) {
    std::string nodes = extent->FindDamage(offset, n, /*again=*/tries_ > 0);
    if (!nodes.empty()) nodes_ = std::move(nodes);
    return !nodes_.empty() && ++tries_ < kTries;
  }
  /// Those that hold damaged bytes, if that is known.
  const std::string& nodes() const { return nodes_; }

 private:
  /// The first of what others found, one more of what is found then.
  static constexpr int kTries = 3;
  int tries_ = 0;
  std::string nodes_;
};

/// Takes the bytes of a table under construction: a bounded set of registered chunk buffers,
/// written out in the background as they are committed, first in, first out. Thread safety: none;
/// one builder uses it.
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
