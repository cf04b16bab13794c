#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "nacre/status.h"
#include "pool/store/table_rebuild.h"

namespace nacre::pool {

class TableStore;
class WriteKeys;

struct RebuildResult : RebuildWork {
  std::vector<Status> tables;  ///< As in the job.
  uint64_t cpu_nanos = 0;
};

/// What a node is asked to make anew, near the data. The owner reserves the space beforehand.
struct RebuildJob {
  using Result = RebuildResult;

  uint64_t database_id = 0;
  std::vector<TableRebuild> tables;
  const WriteKeys* write_keys = nullptr;  ///< As in CompactionJob.
};

/// Fails as a whole only with `Aborted`, once `*cancelled` (may be null) is set.
Status RunRebuild(const RebuildJob& job, TableStore* store, const std::atomic<bool>* cancelled,
                  RebuildResult* result);

}  // namespace nacre::pool
