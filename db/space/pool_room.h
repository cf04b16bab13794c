#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "db/version/version.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/space/space_allocator.h"

namespace nacre {

/// What is free in a pool.
struct PoolRoom {
  uint64_t free = 0;   ///< For the tables that it was measured for.
  uint64_t total = 0;  ///< What all nodes have that were asked, in use or not.
  int domains = 0;     ///< That these nodes are in.
};

/// Asks all nodes what tables of so many fragments may still fill, in extents of `piece` bytes or
/// more. A failure: nodes that did not answer may have more.
Status MeasureRoom(const pool::PoolClient& client, pool::SpaceAllocator* space, int fragments,
                   uint64_t piece, PoolRoom* room);

/// The most bytes that tables take if each has so many fragments, in as many domains, of which
/// `free` says what is free in each.
uint64_t PlaceableBytes(std::vector<uint64_t> free, int fragments);

/// How large the headroom is: what an owner does not fill with new records, besides what a flush
/// and the compaction after it take, so that a full pool can be emptied.
struct HeadroomSize {
  /// Bytes of the pool: for the MemTables that are filled until writers are told that the pool is
  /// full, with their log, and for merging them.
  uint64_t buffers = 0;
  /// Bytes of the pool for a new manifest, and for the next owner's log.
  uint64_t opening = 0;
  /// Bytes of tables: for taking tombstones down one level, if no compaction takes more.
  uint64_t step = 0;
  /// What is free in smaller extents does not count.
  uint64_t piece = 0;

  /// Bytes of a pool of `total` bytes, of which it is no more than a part if that can be.
  uint64_t Of(uint64_t total) const {
    constexpr uint64_t kPart = 4;
    return std::max(std::min(buffers + opening, total / kPart), opening);
  }
};

/// The bytes of tables that it takes to merge some tombstones with one table of the next level, or
/// with kSunkTables if these are small.
struct StepRoom {
  uint64_t bytes = 0;
  uint64_t output = 0;  ///< The least that is reserved for one table.
};
/// `target`: how long tables are to be; `largest_record`: of all that there are.
StepRoom RoomOfStep(uint64_t largest_record, uint64_t target, uint64_t chunk_size);

uint64_t LargestRecord(const Version& version);

/// Tombstones are merged with about so many tables of the next level at once, or with one.
inline constexpr uint64_t kSunkTables = 4;

}  // namespace nacre
