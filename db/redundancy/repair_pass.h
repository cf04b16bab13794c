#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "db/redundancy/adaptive_repair_rate.h"
#include "db/redundancy/repair_pace.h"
#include "db/redundancy/repair_planner.h"
#include "db/version/table_handle.h"
#include "nacre/status.h"

namespace nacre {

/// A repair from when there is something to do until there is nothing left, or nothing succeeds:
/// what goes on from one plan to the next.
struct RepairRun {
  RepairPace pace;
  AdaptiveRepairRate rate;
  uint64_t ask_at_nanos = 0;  ///< When the nodes are asked again, for `rate`.
  uint64_t started_nanos = 0;
  uint64_t bytes_repaired = 0;
  uint64_t tables_repaired = 0;
  /// Tables that could not be repaired since forget_at_nanos was set. They come after the others,
  /// so that they do not keep a slow repair from these.
  std::set<uint64_t> failed;
  uint64_t forget_at_nanos = 0;
};
/// One plan, carried out by several threads until it is outdated. The repairer's mutex guards it
/// while they run.
struct RepairPass {
  std::vector<RepairItem> items;
  size_t next = 0;
  uint64_t node_changes = 0;  ///< As MembershipKeeper::changes when it was made.
  uint64_t until_nanos = 0;   ///< When it is to be made anew in any case.
  bool outdated = false;
  uint64_t bytes_repaired = 0;
  std::map<NodeId, size_t> jobs_on_node;
  Status failure;  ///< The first one.
};
struct RepairedTable {
  RepairItem item;
  std::shared_ptr<TableHandle> moved;
};

}  // namespace nacre
