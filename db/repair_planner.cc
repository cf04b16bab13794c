#include "db/repair_planner.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace nacre {

std::vector<RepairItem> PlanRepair(const Version& version, const NodeViews& nodes) {
  std::vector<RepairItem> items;
  for (int level = 0; level < version.num_levels(); ++level) {
    for (const auto& table : version.tables(level)) {
      const Placement& placement = table->meta().placement;
      RepairItem item{.table = table, .level = level};
      FragmentSet lost = 0;
      for (size_t i = 0; i < placement.fragments.size(); ++i) {
        const ExtentAddr& extent = placement.fragments[i];
        if (!nodes.alive(extent.start.node) || (table->damaged() >> i & 1) != 0) {
          lost |= FragmentSet{1} << i;
        } else if (!nodes.draining(extent.start.node)) {
          continue;
        }
        item.wanted |= FragmentSet{1} << i;
        item.bytes += extent.length;
      }
      // Damage is a chunk here and there as a rule: what is too much of it, only an attempt shows.
      item.spare = placement.redundancy.parity - std::popcount(lost);
      const bool hopeless = item.spare < 0 && table->damaged() == 0;
      if (item.wanted != 0 && !hopeless) items.push_back(std::move(item));
    }
  }
  const auto rank = [](const RepairItem& item) {
    return std::make_tuple(item.spare, item.table->degraded_reads() == 0, item.level);
  };
  std::stable_sort(items.begin(), items.end(),
                   [&](const RepairItem& a, const RepairItem& b) { return rank(a) < rank(b); });
  return items;
}

}  // namespace nacre
