#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "jobs/compaction_job.h"
#include "nacre/comparator.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"
#include "table/format/placement.h"
#include "util/memory/arena_block_pool.h"

namespace nacre::pool {

class TableStore;

/// A segment of a database's log, as far as a flush reads it.
struct LogPart {
  uint64_t number = 0;
  uint64_t bytes = 0;              ///< Header and records that were acknowledged.
  std::vector<ExtentAddr> copies;  ///< All with these bytes.
};

/// One key range of one MemTable of a column family, to be made a table from the log that has its
/// updates (near-data flush: docs/design.md, section 6). The owner sends no key and no value; the
/// node that runs the job sorts what it finds.
struct FlushJob {
  using Result = CompactionResult;

  /// What becomes of the updates: range, snapshots, space and so on, as of a compaction. No runs.
  CompactionJob merge;
  std::vector<LogPart> log;
  /// First sequence of the MemTable: updates outside belong to other MemTables.
  SequenceNumber first = 0;
  SequenceNumber last = 0;
};

/// Runs `job` through the merge kernel over updates from the log. Copies in local memory are read
/// there, others from their nodes. `Corruption` naming segment, offset and node where a record is
/// not as the owner wrote it: stamp, checksum and sequences are looked at. `blocks`:
/// memory for the updates, as for an arena.
Status RunFlush(const FlushJob& job, const JobPlugins& plugins, TableStore* store,
                const std::atomic<bool>* cancelled, std::shared_ptr<ArenaBlockSource> blocks,
                CompactionResult* result);

}  // namespace nacre::pool
