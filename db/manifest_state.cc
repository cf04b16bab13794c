#include "db/manifest_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace nacre {
namespace {

Status Impossible(const ManifestEdit& edit, std::string_view what) {
  return Status::Corruption(fmt::format("manifest edit {}: {}", edit.version, what));
}

/// That `removed` are there, are named once, and are not added as well.
template <typename Map>
Status CheckRemoved(const ManifestEdit& edit, std::string_view what, const Map& present,
                    const std::vector<uint64_t>& removed, const std::set<uint64_t>& added) {
  std::set<uint64_t> seen;
  for (const uint64_t id : removed) {
    if (!present.contains(id)) {
      return Impossible(edit, fmt::format("removes {} {}, which is not there", what, id));
    }
    if (!seen.insert(id).second || added.contains(id)) {
      return Impossible(edit, fmt::format("contradicts itself about {} {}", what, id));
    }
  }
  return Status::OK();
}

}  // namespace

Status ManifestState::Check(const ManifestEdit& edit) const {
  if (edit.version != version + 1) {
    return Impossible(edit, fmt::format("comes after version {}", version));
  }
  std::set<uint64_t> added;
  for (const auto& [level, meta] : edit.added) {
    if (level >= num_levels) {
      return Impossible(
          edit, fmt::format("puts table {} into level {} of {}", meta.id, level, num_levels));
    }
    if (!added.insert(meta.id).second) {
      return Impossible(edit, fmt::format("adds table {} twice", meta.id));
    }
  }
  NACRE_RETURN_IF_ERROR(CheckRemoved(edit, "table", tables, edit.removed, added));
  added.clear();
  for (const LogSegment& segment : edit.segments_added) {
    if (!added.insert(segment.number).second) {
      return Impossible(edit, fmt::format("adds segment {} twice", segment.number));
    }
  }
  return CheckRemoved(edit, "segment", segments, edit.segments_removed, added);
}

Status ManifestState::Apply(const ManifestEdit& edit) {
  NACRE_RETURN_IF_ERROR(Check(edit));
  ApplyChecked(edit);
  return Status::OK();
}

void ManifestState::ApplyChecked(const ManifestEdit& edit) {
  version = edit.version;
  for (const uint64_t id : edit.removed) tables.erase(id);
  for (const auto& table : edit.added) tables.insert_or_assign(table.second.id, table);
  for (const uint64_t number : edit.segments_removed) segments.erase(number);
  for (const LogSegment& segment : edit.segments_added) {
    segments.insert_or_assign(segment.number, segment);
    next_segment = std::max(next_segment, segment.number + 1);
  }
  for (const auto& [node, instance] : edit.nodes) nodes[node] = instance;
  next_table_id = std::max(next_table_id, edit.next_table_id.value_or(0));
  last_sequence = std::max(last_sequence, edit.last_sequence.value_or(0));
  if (edit.restored) restoring = 0;
}

void ManifestState::Renumber(const std::map<NodeId, NodeId>& numbers) {
  const auto renumber = [&](ExtentAddr* extent) {
    const auto it = numbers.find(static_cast<NodeId>(extent->start.node));
    extent->start.node = it != numbers.end() ? it->second : kLostNode;
  };
  for (auto& [id, table] : tables) {
    for (ExtentAddr& fragment : table.second.placement.fragments) renumber(&fragment);
  }
  for (auto& [number, segment] : segments) {
    for (ExtentAddr& copy : segment.copies) renumber(&copy);
  }
  std::map<NodeId, uint64_t> renumbered;
  for (const auto& [node, instance] : nodes) {
    if (const auto it = numbers.find(node); it != numbers.end()) {
      renumbered[it->second] = instance;
    }
  }
  nodes = std::move(renumbered);
}

}  // namespace nacre
