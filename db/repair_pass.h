#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "db/repair_planner.h"
#include "db/table_handle.h"
#include "nacre/status.h"

namespace nacre {

/// What has been said, and what has changed since the last look.
struct RepairOrders {
  bool paused = false;
  uint64_t bytes_per_second = 0;  ///< 0: no limit.
  std::vector<bool> nodes;        ///< Alive and draining, in turns.
  bool changed = false;
};
/// One walk over all that is to be repaired, by several threads. Under the mutex while they run.
struct RepairPass {
  std::vector<RepairItem> items;
  size_t next = 0;
  uint64_t bytes_per_second = 0;
  uint64_t next_nanos = 0;  ///< When the limit allows the next batch.
  uint64_t started_nanos = 0;
  uint64_t bytes_repaired = 0;
  uint64_t tables_repaired = 0;
  Status failure;  ///< The first.
};
struct RepairedTable {
  RepairItem item;
  std::shared_ptr<TableHandle> moved;
};

}  // namespace nacre
