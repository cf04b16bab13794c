#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/context/database_context.h"
#include "db/family/column_family.h"
#include "db/memtable/memtable.h"
#include "db/version/version.h"
#include "jobs/flush_job.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"
#include "table/format/placement.h"
#include "table/merge/merge_kernel.h"

namespace nacre {

/// In how many ranges of keys a MemTable is flushed at most, by so many threads.
uint64_t FlushRangesMax(const MemTable& memtable, int threads);
/// What is reserved for the table of each of `ranges` ranges, but for lineage and range tombstones.
/// Sized for records of about one size, and for any one of them alone; a table that turns out too
/// small is followed by another.
uint64_t FlushedTableBytes(const MemTable& memtable, uint64_t ranges, uint64_t largest_value,
                           uint64_t chunk_size);
/// The same for the smallest tables that it may be flushed to.
uint64_t LeastFlushedTableBytes(const MemTable& memtable, uint64_t largest_value,
                                uint64_t chunk_size);

/// What a flush near the data needs of the log.
struct NearFlush {
  std::vector<pool::LogPart> log;
  std::map<NodeId, uint64_t> local_bytes;  ///< Bytes of the log.
  SequenceNumber first = 0;
  SequenceNumber last = 0;
};

/// One MemTable of those that are flushed together, and how that is to be done.
struct FlushPart {
  std::shared_ptr<ColumnFamily> family;
  std::shared_ptr<MemTable> memtable;  ///< Not empty.
  std::optional<NearFlush> near;       ///< None: in this process.
  std::string first;                   ///< User keys.
  std::string last;
  std::vector<std::string> cuts;  ///< First keys of the second and later ranges.
  uint32_t first_range = 0;       ///< Among the ranges of all parts.

  size_t ranges() const { return cuts.size() + 1; }
};

/// What one thread of a flush made of its range of user keys.
struct FlushedRange {
  Status status;
  TableList tables;
  MergeStats stats;
  bool near = false;  ///< The data: a node did it.
  uint64_t begun_nanos = 0;
  uint64_t ended_nanos = 0;
};

/// The flush of one MemTable, with those of other families or alone.
struct PartFlush {
  const FlushPart* part = nullptr;
  MergeOptions merge;             ///< Options for the whole MemTable.
  uint64_t manifest_version = 0;  ///< One for all tables of a flush: level 0 is sorted by it.
  uint64_t bound = 0;             ///< Bytes reserved for a table.
  uint64_t least = 0;             ///< The same where there is no room for as many in one piece.
  std::vector<FlushedRange> ranges;

  uint64_t ReservedBytes() const { return bound * ranges.size(); }
};

/// Opens the tables of a range, and frees what was reserved for others.
void TakeFlushedTables(DatabaseContext* context, const ColumnFamily& family,
                       std::vector<TableMeta> tables, const std::vector<Placement>& reserved,
                       FlushedRange* result);

}  // namespace nacre
