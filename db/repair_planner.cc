#include "db/repair_planner.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

namespace nacre {

std::vector<RepairItem> PlanRepair(const VersionList& versions, const NodeViews& nodes) {
  std::vector<RepairItem> items;
  for (int level = 0; level < Depth(versions); ++level) {
    for (const auto& table : TablesOf(versions, level)) {
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
    return std::make_tuple(item.spare, !item.table->read_degraded(), item.level);
  };
  std::stable_sort(items.begin(), items.end(),
                   [&](const RepairItem& a, const RepairItem& b) { return rank(a) < rank(b); });
  return items;
}

std::vector<RepairItem> PlanBalance(const VersionList& versions, const NodeViews& nodes,
                                    int node_count) {
  // Below this a table here or there makes the difference.
  constexpr uint64_t kMinShareBytes = 8 << 20;
  std::map<NodeId, uint64_t> used;
  for (int i = 0; i < node_count; ++i) {
    const auto node = static_cast<NodeId>(i);
    if (nodes.alive(node) && !nodes.draining(node)) used[node] = 0;
  }
  if (used.empty()) return {};
  uint64_t total = 0;
  for (int level = 0; level < Depth(versions); ++level) {
    for (const auto& table : TablesOf(versions, level)) {
      for (const ExtentAddr& extent : table->meta().placement.fragments) {
        const auto node = used.find(extent.start.node);
        if (node == used.end()) continue;
        node->second += extent.length;
        total += extent.length;
      }
    }
  }
  const uint64_t share = total / used.size();
  const auto emptiest = std::min_element(
      used.begin(), used.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (share < kMinShareBytes || emptiest->second >= share / 2) return {};

  std::vector<RepairItem> items;
  for (int level = Depth(versions); level-- > 0;) {
    for (const auto& table : TablesOf(versions, level)) {
      const std::vector<ExtentAddr>& fragments = table->meta().placement.fragments;
      size_t fullest = fragments.size();
      uint64_t most = share;
      bool there = false;
      for (size_t i = 0; i < fragments.size(); ++i) {
        const NodeId node = fragments[i].start.node;
        there = there || node == emptiest->first;
        const auto load = used.find(node);
        if (load == used.end() || load->second <= most) continue;
        fullest = i;
        most = load->second;
      }
      if (there || fullest == fragments.size()) continue;
      const uint64_t bytes = fragments[fullest].length;
      if (emptiest->second + bytes > share) return items;
      used[fragments[fullest].start.node] -= bytes;
      emptiest->second += bytes;
      items.push_back({.table = table,
                       .level = level,
                       .wanted = FragmentSet{1} << fullest,
                       .spare = table->meta().placement.redundancy.parity,
                       .bytes = bytes,
                       .target = emptiest->first});
    }
  }
  return items;
}

}  // namespace nacre
