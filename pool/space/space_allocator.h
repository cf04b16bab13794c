#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/space/home_nodes.h"
#include "pool/space/space_quarantine.h"
#include "table/format/placement.h"
#include "util/codes/reed_solomon.h"

namespace nacre::pool {

struct SpaceUsage {
  uint64_t leased_bytes = 0;  ///< Slabs held.
  uint64_t used_bytes = 0;    ///< Bytes in live extents.
};

/// The extents of one database: carved locally out of slabs that the nodes lease as a whole
/// (FUSEE section 4.4). Slabs are leased ahead of need, and returned in batches when wholly free.
/// Free ranges of adjacent slabs join, so an extent may be larger than a slab.
///
/// Thread safety: all methods may be called from many threads at once.
class SpaceAllocator {
 public:
  /// `chunk_size`: of the tables.
  SpaceAllocator(PoolClient* client, uint64_t database_id, uint64_t slab_bytes,
                 uint64_t chunk_size);
  /// Waits for background requests; does not return slabs.
  ~SpaceAllocator();

  /// Reserves room for a table of `table_bytes` (heads and tails are added) on live nodes of
  /// distinct failure domains, those with the fewest used bytes first; one fragment on `preferred`
  /// if it is valid, has room, and does not hold much more than its share of the database already.
  /// Which node has data, and which parity, changes from table to table. A table too small for
  /// striping is replicated, with as many copies as may be lost and one. `chunk_size`: of this
  /// table; 0: that of all.
  /// `NoSpace` if the pool is full, `Unavailable` if nodes in fewer domains than fragments are
  /// alive (the lost ones are named).
  Status Reserve(const Redundancy& redundancy, uint64_t table_bytes, NodeId preferred,
                 Placement* placement, uint64_t chunk_size = 0);
  /// Gives back what lies beyond `table_bytes`, and shortens the extents of `*placement`.
  void Trim(Placement* placement, uint64_t table_bytes);
  /// As Reserve for the fragments `wanted` of a table that lies at `placement` already: on nodes
  /// that have none of its other fragments. `*extents` has one for each, in their order.
  Status ReserveFragments(const Placement& placement, uint64_t table_bytes, FragmentSet wanted,
                          std::vector<ExtentAddr>* extents);
  /// Extents on lost nodes are forgotten. Those on nodes where a write that this client gave up may
  /// still be stored are free when it cannot any more (MayStillWriteOn).
  void Free(const Placement& placement);
  void Free(const ExtentAddr& extent);
  /// Must be called after a failed write, before its space is freed: gives the nodes a second to
  /// end it, so that another attempt does not lack its space.
  void EndAbandonedWrites() { pool::EndAbandonedWrites(client_); }
  /// Frees a job's outputs: what the job may still write to is free when it cannot any more.
  void Free(const JobEnd& end, const Placement& placement) { Free(end, placement.fragments); }
  void Free(const JobEnd& end, const std::vector<ExtentAddr>& extents) {
    quarantine_.Take(end, extents);
  }
  /// Whether the node has not yet confirmed the end of some job there.
  bool AwaitsEndOn(NodeId node) const { return quarantine_.AwaitsEndOn(node); }
  /// Bytes that wait for a job's end. They count as used.
  uint64_t quarantined_bytes() const { return quarantine_.held_bytes(); }
  /// Must be called before leaving the database: nothing is asked of its nodes any more, and what
  /// waits for a job's end stays used. The next owner finds that free.
  void EndQuarantine() { quarantine_.Stop(); }
  /// Must be called before leaving the database, as the last thing: nothing is leased or returned
  /// any more, also for what is freed later, as another owner may have the slabs by then. Waits for
  /// requests that are under way.
  void End();

  /// Chooses `nodes` nodes as home: as long as they have room, everything goes there. Once, after
  /// Restore. What nodes that do not answer have leased counts as all.
  void SettleOn(int nodes);
  /// Empty unless SettleOn chose one.
  HomeNodes Home() const;

  /// Which nodes are to be left: nothing new goes there as long as the others have room.
  void SetDraining(std::vector<NodeId> nodes);

  /// Takes over what a reopened database uses: slabs that this database holds, and extents in
  /// them that are live. All else in the slabs is free.
  Status Restore(NodeId node, const std::vector<uint64_t>& slab_offsets,
                 const std::vector<ExtentAddr>& live);
  /// Slabs held on `node`, once background requests have come to rest: what a clean close writes
  /// down.
  std::vector<uint64_t> Slabs(NodeId node) const;

  /// Returns every wholly free slab now.
  Status ReturnFreeSlabs();

  struct FreeSpace {
    uint64_t bytes = 0;  ///< Bytes in pieces that are large enough.
    uint64_t total = 0;  ///< Bytes of the node, whichever database has them.
  };
  /// What this database may still fill on `node`: what is free in its slabs, in pieces of `piece`
  /// bytes or more, and slabs that are not leased. Asks the node; waits for leases and returns in
  /// progress, so that no slab is missed, unless that takes long: then what it said last does.
  Status MeasureFree(NodeId node, uint64_t piece, FreeSpace* free);

  SpaceUsage Usage(NodeId node) const;
  SpaceUsage Usage() const;

 private:
  class Rep;
  PoolClient* const client_;
  std::unique_ptr<Rep> rep_;
  SpaceQuarantine quarantine_;  ///< Ends before what it frees.
};

}  // namespace nacre::pool
