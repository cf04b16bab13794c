#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/store/table_rebuild.h"
#include "rdma/transport.h"
#include "table/format/extent.h"
#include "table/format/placement.h"

namespace nacre::pool {

class WriteKeys;

/// The region of the node this process is, when a memory node runs a job.
struct LocalMemory {
  NodeId node = kNoNode;
  char* base = nullptr;
  uint64_t size = 0;
  /// The registration of these bytes: a table with one copy here and others elsewhere is built
  /// here, and sent from here.
  const rdma::MemoryRegion* region = nullptr;
};

/// What computing the parity of new tables has cost, by processor time of the threads that did it.
struct EncodingWork {
  uint64_t data_bytes = 0;
  uint64_t cpu_nanos = 0;
};

/// Tables as extents over the nodes: where redundancy is carried out, for reading and writing.
///
/// Thread safety: all methods may be called from many threads at once. Outlives what it opened.
class TableStore {
 public:
  enum class Memory : uint8_t {
    kHeld,  ///< A table that is open keeps its memory.
    /// It may be reused at any time. The reader's own checksums tell whether bytes that were read
    /// directly are the table's; bytes are decoded from whole chunks only, which are compared with
    /// the tails of their fragments first (pool/store/chunk_sums.h).
    kUnheld,
  };

  /// `client` is not owned and outlives this. `buffers_in_flight`: chunk buffers per writer.
  /// Buffers and streams are pooled and reused.
  TableStore(PoolClient* client, LocalMemory local, int buffers_in_flight = 4,
             Memory memory = Memory::kHeld);
  ~TableStore();

  /// The extent is in place when a whole replica lies in local memory. Reads go to live replicas,
  /// or to the fragments that have the bytes, and turn to other nodes when one fails: lost
  /// fragments are decoded, of just the bytes asked for; so are chunks that are known to be
  /// damaged. `Unavailable` names the nodes when too many are lost.
  std::shared_ptr<Extent> OpenExtent(uint64_t table_id, const Placement& placement, uint64_t size);

  /// Writes a table to every fragment of `placement`. Any failed fragment fails the writer
  /// (`Unavailable`, naming the node): the caller reserves elsewhere and starts again. `keys`,
  /// which outlive the writer, are those of a job; null: those of what was leased to this client.
  Status NewWriter(uint64_t table_id, const Placement& placement, size_t chunk_size,
                   std::unique_ptr<ExtentWriter>* writer, const WriteKeys* keys = nullptr);

  /// Makes fragments of a table anew from those that are left, and adds to `*work` what that
  /// took. `Unavailable` naming nodes, `Aborted` once `*cancelled` (may be null) is set. `keys`: as
  /// of NewWriter.
  Status Rebuild(const TableRebuild& table, const std::atomic<bool>* cancelled, RebuildWork* work,
                 const WriteKeys* keys = nullptr);

  /// Address of a table byte in replica number `copy`, for a point read: from there on, as many
  /// bytes follow in the table as are left of the chunk. An erasure-coded table has one. It is not
  /// valid while the node that holds this replica is lost, or, with `only_prompt`, is slow.
  RemoteAddr Resolve(const Placement& placement, uint64_t offset, int copy,
                     bool only_prompt = false) const;
  /// The replica that reads of this byte had better begin with. Reads spread over all of them by
  /// offset; of two that the offset names, the one on the node that has answered faster of late.
  int FirstCopy(const Placement& placement, uint64_t offset) const;

  /// An extent's bytes, head first; null if they do not lie in local memory.
  const char* InLocalMemory(const ExtentAddr& extent) const;

  /// From here on the tables may lose their memory to others: reads of extents that begin, or are
  /// awaited, after this answer `ShutdownInProgress`, and nothing that was loaded counts.
  void Close();

  PoolClient* client() const;
  Memory memory() const;
  EncodingWork encoding_work() const;
  /// How often bytes of a table that had been read were found damaged.
  uint64_t damaged_reads() const;
  /// How often anything was added to what extents tell in `damaged`: as long as this stays the
  /// same, so do they.
  uint64_t damage_reports() const;

  class Rep;  ///< Used by the files that implement this.

 private:
  std::unique_ptr<Rep> rep_;
};

}  // namespace nacre::pool
