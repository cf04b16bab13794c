#pragma once

#include <cstdint>
#include <vector>

#include "nacre/status.h"
#include "pool/read/pool_reader.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// Which slab of one node is leased to which database, as the table in the node's region says
/// (docs/formats.md, "Region of a memory node").
struct SlabMap {
  NodeId node = kNoNode;
  uint64_t instance_id = 0;
  uint64_t slab_bytes = 0;
  uint64_t slab_area = 0;        ///< Offset of the first slab.
  std::vector<uint64_t> owners;  ///< Database id by slab; 0: free.

  uint64_t OffsetOf(size_t slab) const { return slab_area + slab * slab_bytes; }
  /// Whether all of the extent lies in slabs of the database.
  bool Owns(uint64_t database_id, const ExtentAddr& extent) const;
};

/// Reads the map of `node`. `Corruption` if what is there describes no region.
Status ReadSlabMap(PoolReader* reader, NodeId node, SlabMap* map);

}  // namespace nacre::pool
