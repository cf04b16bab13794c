#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "nacre/status.h"
#include "table/format/placement.h"

namespace nacre::pool {

class TableStore;

/// A fragment that a node is to check, with all that belongs to it.
struct ScrubFragment {
  uint64_t table_id = 0;
  uint32_t fragment = 0;
  ExtentAddr extent;   ///< On that node.
  uint64_t bytes = 0;  ///< Head and tail not counted.
};

struct FragmentDamage {
  uint32_t index = 0;  ///< In the job.
  bool head = false;
  /// Nothing can be said of the chunks then.
  bool tail = false;
  std::vector<uint64_t> chunks;
};

struct ScrubResult {
  uint64_t bytes = 0;  ///< Checked.
  std::vector<FragmentDamage> damaged;
};

/// Fragments of a database that a node is to check against their checksums, all by itself. The
/// owner keeps the tables alive meanwhile.
struct ScrubJob {
  using Result = ScrubResult;

  uint64_t database_id = 0;
  uint64_t bytes_per_second = 0;  ///< 0: as fast as can be.
  std::vector<ScrubFragment> fragments;
};

/// `InvalidArgument` for a fragment that does not lie in the local memory of `store`; `Aborted`
/// once `*cancelled` (may be null) is set.
Status RunScrub(const ScrubJob& job, const TableStore& store, const std::atomic<bool>* cancelled,
                ScrubResult* result);

}  // namespace nacre::pool
