#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "db/context/node_states.h"
#include "db/version/version.h"
#include "util/codes/reed_solomon.h"

namespace nacre {

/// A table of which fragments have to be made anew.
struct RepairItem {
  std::shared_ptr<TableHandle> table;
  int level = 0;
  FragmentSet wanted = 0;
  int spare = 0;       ///< Further fragments that may be lost before bytes are; negative: they are.
  uint64_t bytes = 0;  ///< Bytes of the wanted fragments, heads and tails included.
  NodeId target = kNoNode;  ///< Where they must go, or stay where they are; kNoNode: anywhere.
};

/// What is to be done for the tables of `versions`, most urgent first: what is closest to being
/// lost, then what reads have met, then upper levels. Of tables that have lost too much nothing,
/// nor of those that have lost nothing but what is on nodes in maintenance. Looks at the tables of
/// those chunks only that have some on a node that is lost or draining, or may have one that is
/// damaged: `damage_reports` is TableStore's before the call.
std::vector<RepairItem> PlanRepair(const VersionList& versions, const NodeStates& nodes,
                                   uint64_t damage_reports);

/// Whether tables cannot be read for lack of nodes.
bool NeedsLostNodes(const VersionList& versions, const NodeStates& nodes);

/// What is to be moved when there is nothing to repair: onto a node that has less than half of its
/// share, as one that has just joined, as much as makes it an equal; from those that have more than
/// theirs, and of the deepest tables, as compaction spreads the others soon.
std::vector<RepairItem> PlanBalance(const VersionList& versions, const NodeStates& nodes);

}  // namespace nacre
