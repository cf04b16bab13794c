#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "nacre/status.h"
#include "table/format/placement.h"

namespace nacre::pool {

class TableStore;
class WriteKeys;

/// A fragment that is to be had anew.
struct FragmentRebuild {
  int fragment = 0;
  ExtentAddr to;  ///< As long as the fragment, with what belongs to it.
};

/// Fragments of one table that are lost, damaged, or to leave the node they lie on.
struct TableRebuild {
  uint64_t table_id = 0;
  uint64_t table_bytes = 0;
  Placement placement;  ///< As it was.
  std::vector<FragmentRebuild> fragments;
};

/// What a node is asked to make anew, near the data. The owner reserves the space beforehand.
struct RebuildJob {
  uint64_t database_id = 0;
  std::vector<TableRebuild> tables;
  const WriteKeys* write_keys = nullptr;  ///< As in CompactionJob.
};

struct RebuildResult {
  std::vector<Status> tables;  ///< As in the job.
  uint64_t bytes_read = 0;     ///< From other nodes.
  uint64_t bytes_written = 0;  ///< Of the fragments.
  uint64_t cpu_nanos = 0;
};

/// Fails as a whole only with `Aborted`, once `*cancelled` (may be null) is set.
Status RunRebuild(const RebuildJob& job, TableStore* store, const std::atomic<bool>* cancelled,
                  RebuildResult* result);

}  // namespace nacre::pool
