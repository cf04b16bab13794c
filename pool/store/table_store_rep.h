#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "pool/read/connection_pool.h"
#include "pool/read/loadable_nodes.h"
#include "pool/store/table_store.h"
#include "table/format/extent.h"
#include "table/format/fragment_checksums.h"

namespace nacre::pool {

/// The insides of a TableStore, shared by the files that implement it.
class TableStore::Rep {
 public:
  Rep(PoolClient* client, LocalMemory local, int buffers_in_flight, Memory memory);

  /// A lane that is connected to all nodes of `placement`, on which there is room for it.
  Status ConnectedLane(const Placement& placement, std::unique_ptr<Lane>* lane);

  /// `Corruption` unless the fragment lies in the region of its node (as far as that is known) and
  /// has room for a fragment of `bytes` and its tail.
  Status CheckFragment(const ExtentAddr& fragment, uint64_t bytes, uint64_t chunk_size) const;
  /// See TableStore::FirstCopy.
  size_t FirstCopy(const Placement& placement, uint64_t offset) const;
  /// The table bytes of `fragment` in local memory; null if they are not there.
  char* LocalBytes(const ExtentAddr& fragment) const;

  PoolClient* const client;
  Fabric* const fabric;
  const LocalMemory local;
  const Memory memory;
  const int buffers_in_flight;
  ConnectionPool connections;
  LoadableNodes loadable;
  std::atomic<bool> closed{false};
  std::atomic<uint64_t> damaged_reads{0};
  std::atomic<uint64_t> damage_reports{0};

  std::atomic<uint64_t> encoded_bytes{0};  ///< These two: see EncodingWork.
  std::atomic<uint64_t> encoding_nanos{0};
};

/// See TableStore::NewWriter; `placement` is checked by the caller.
std::unique_ptr<ExtentWriter> NewTableWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane,
                                             uint64_t table_id, const Placement& placement,
                                             const WriteKeys* keys);
std::unique_ptr<ExtentWriter> NewStripedWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane,
                                               uint64_t table_id, const Placement& placement,
                                               const WriteKeys* keys);

class FragmentWrites;
/// The end of each table: the head and the tail of each fragment, by `flight`, and the wait for all
/// writes.
Status WriteEnds(const Slice& head, const std::vector<FragmentChecksums>& fragments, size_t flight,
                 FragmentWrites* writes);
Status Outgrown(uint64_t capacity);

}  // namespace nacre::pool
