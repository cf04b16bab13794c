#pragma once

#include <cstdint>
#include <map>
#include <vector>

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

/// What one thread of a flush made of its range of user keys.
struct FlushedRange {
  Status status;
  TableList tables;
  MergeStats stats;
  bool near = false;  ///< The data: a node did it.
};

}  // namespace nacre
