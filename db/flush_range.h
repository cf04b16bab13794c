#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/column_family.h"
#include "db/memtable.h"
#include "db/version.h"
#include "memnode/flush_job.h"
#include "nacre/status.h"
#include "table/internal_key.h"
#include "table/merge_kernel.h"
#include "table/placement.h"

namespace nacre {

/// What a flush near the data needs of the log.
struct NearFlush {
  std::vector<memnode::LogPart> log;
  std::map<NodeId, uint64_t> local_bytes;  ///< Of the log.
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
};

}  // namespace nacre
