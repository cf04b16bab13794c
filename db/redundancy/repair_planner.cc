#include "db/redundancy/repair_planner.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

namespace nacre {

namespace {

/// Whether some of its tables have fragments on nodes of which `holds` is true.
template <typename Holds>
bool AnyNode(const TableChunk& chunk, const Holds& holds) {
  const auto& nodes = chunk.sums().extent_bytes_by_node;
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const auto& entry) { return holds(entry.first); });
}

/// Adds what is to be done for a table to `items`. What is on a node in maintenance is awaited
/// while that is away, or cannot be reached right after it came back, as long as the table has lost
/// nothing else.
void PlanTable(const std::shared_ptr<TableHandle>& table, int level, const NodeStates& nodes,
               FragmentSet damaged, std::vector<RepairItem>* items) {
  const Placement& placement = table->meta().placement;
  FragmentSet lost = 0;
  FragmentSet awaited = 0;
  FragmentSet wanted = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < placement.fragments.size(); ++i) {
    const ExtentAddr& extent = placement.fragments[i];
    if (!nodes.Alive(extent.start.node) || (damaged >> i & 1) != 0) {
      lost |= FragmentSet{1} << i;
      if (nodes.Awaited(extent.start.node)) awaited |= FragmentSet{1} << i;
    } else if (!nodes.Draining(extent.start.node)) {
      continue;
    }
    wanted |= FragmentSet{1} << i;
    bytes += extent.length;
  }
  if (wanted == awaited) return;
  // Damage is a chunk here and there as a rule: what is too much of it, only an attempt shows.
  const int spare = placement.redundancy.parity - std::popcount(lost);
  if (spare < 0 && damaged == 0) return;
  items->push_back(
      {.table = table, .level = level, .wanted = wanted, .spare = spare, .bytes = bytes});
}

}  // namespace

std::vector<RepairItem> PlanRepair(const VersionList& versions, const NodeStates& nodes,
                                   uint64_t damage_reports) {
  std::vector<RepairItem> items;
  ForEachChunk(versions, [&](const TableChunk& chunk, int level) {
    const bool leave = AnyNode(chunk, [&](NodeId node) {
      return nodes.Draining(node) || (!nodes.Alive(node) && !nodes.Awaited(node));
    });
    if (!leave && chunk.IsKnownWhole(damage_reports)) return;
    FragmentSet any_damage = 0;
    for (const auto& table : chunk.tables()) {
      const FragmentSet damaged = table->damaged();
      any_damage |= damaged;
      PlanTable(table, level, nodes, damaged, &items);
    }
    if (any_damage == 0) chunk.NoteWhole(damage_reports);
  });
  const auto rank = [](const RepairItem& item) {
    return std::make_tuple(item.spare, !item.table->read_degraded(), item.level);
  };
  std::stable_sort(items.begin(), items.end(),
                   [&](const RepairItem& a, const RepairItem& b) { return rank(a) < rank(b); });
  return items;
}

bool NeedsLostNodes(const VersionList& versions, const NodeStates& nodes) {
  const auto lost = [&](NodeId node) { return !nodes.Alive(node); };
  bool needs = false;
  ForEachChunk(versions, [&](const TableChunk& chunk, int /*level*/) {
    if (needs || !AnyNode(chunk, lost)) return;
    needs = std::any_of(chunk.tables().begin(), chunk.tables().end(), [&](const auto& table) {
      const Placement& placement = table->meta().placement;
      const auto gone =
          std::count_if(placement.fragments.begin(), placement.fragments.end(),
                        [&](const ExtentAddr& extent) { return lost(extent.start.node); });
      return gone > placement.redundancy.parity;
    });
  });
  return needs;
}

std::vector<RepairItem> PlanBalance(const VersionList& versions, const NodeStates& nodes) {
  // Below this a table here or there makes the difference.
  constexpr uint64_t kMinShareBytes = 8 << 20;
  std::map<NodeId, uint64_t> used;
  for (size_t i = 0; i < nodes.alive.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (nodes.Takes(node)) used[node] = 0;
  }
  if (used.empty()) return {};
  uint64_t total = 0;
  for (const auto& version : versions) {
    for (int level = 0; level < version->depth(); ++level) {
      for (const auto& chunk : version->chunks(level)) {
        for (const auto& [id, bytes] : chunk->sums().extent_bytes_by_node) {
          const auto node = used.find(id);
          if (node == used.end()) continue;
          node->second += bytes;
          total += bytes;
        }
      }
    }
  }
  const uint64_t share = total / used.size();
  const auto emptiest = std::min_element(
      used.begin(), used.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (share < kMinShareBytes || emptiest->second >= share / 2) return {};

  std::vector<std::pair<std::shared_ptr<TableHandle>, int>> tables;
  ForEachTable(versions, [&](const auto& table, int level) { tables.emplace_back(table, level); });
  std::stable_sort(tables.begin(), tables.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<RepairItem> items;
  for (const auto& [table, level] : tables) {
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
  return items;
}

}  // namespace nacre
