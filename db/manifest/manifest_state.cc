#include "db/manifest/manifest_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace nacre {
namespace {

Status Impossible(const ManifestEdit& edit, std::string_view what) {
  return Status::Corruption(fmt::format("manifest edit {}: {}", edit.version, what));
}

/// Checks that `removed` exist, are named once, and are not added as well.
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

/// Checks that added families are new, dropped ones exist, and those leave no tables.
Status CheckFamilies(const ManifestState& state, const ManifestEdit& edit) {
  std::set<uint64_t> added;
  std::set<std::string_view> names;
  for (const auto& [id, family] : edit.families_added) {
    if (id < state.next_family) {
      return Impossible(edit, fmt::format("adds column family {} anew", id));
    }
    const auto same_name = [&name = family.name](const auto& other) {
      return other.second.name == name;
    };
    if (!names.insert(family.name).second ||
        std::any_of(state.families.begin(), state.families.end(), same_name)) {
      return Impossible(edit, fmt::format("adds a second column family {}", family.name));
    }
    added.insert(id);
  }
  NACRE_RETURN_IF_ERROR(
      CheckRemoved(edit, "column family", state.families, edit.families_dropped, added));
  if (edit.families_dropped.empty()) return Status::OK();
  const std::set<uint64_t> dropped(edit.families_dropped.begin(), edit.families_dropped.end());
  const std::set<uint64_t> removed(edit.removed.begin(), edit.removed.end());
  const auto stays = [&](const auto& table) {
    return dropped.contains(table.second.second.family) && !removed.contains(table.first);
  };
  const bool adds = std::any_of(edit.added.begin(), edit.added.end(), [&](const auto& table) {
    return dropped.contains(table.second.family);
  });
  if (adds || std::any_of(state.tables.begin(), state.tables.end(), stays)) {
    return Impossible(edit, "drops a column family and not all its tables");
  }
  return Status::OK();
}

}  // namespace

Status ManifestState::Check(const ManifestEdit& edit) const {
  if (edit.version != version + 1) {
    return Impossible(edit, fmt::format("comes after version {}", version));
  }
  NACRE_RETURN_IF_ERROR(CheckFamilies(*this, edit));
  std::set<uint64_t> added;
  for (const auto& [level, meta] : edit.added) {
    const auto made = edit.families_added.find(meta.family);
    const uint32_t levels =
        made != edit.families_added.end() ? made->second.num_levels : LevelsOf(meta.family);
    if (level >= levels) {
      return Impossible(edit, fmt::format("puts table {} into level {} of {} of column family {}",
                                          meta.id, level, levels, meta.family));
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
  for (const uint64_t id : edit.families_dropped) families.erase(static_cast<uint32_t>(id));
  for (const auto& [id, family] : edit.families_added) {
    families.insert_or_assign(id, family);
    next_family = std::max(next_family, id + 1);
  }
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
