#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "db/manifest/manifest_edit.h"
#include "db/wal/log_segments.h"
#include "nacre/status.h"
#include "table/format/table_meta.h"

namespace nacre {

/// What a database consists of at one manifest version: the sum of its edits, and what recovery
/// gives. Thread safety: as of any struct.
struct ManifestState {
  // These never change.
  /// Comparator of the default column family, to which the levels belong as well.
  std::string comparator;
  uint32_t num_levels = 0;
  uint64_t slab_bytes = 0;
  uint64_t database_id = 0;

  uint64_t version = 0;  ///< Version of the latest edit.
  uint64_t next_table_id = 1;
  SequenceNumber last_sequence = 0;
  uint64_t next_segment = 1;  ///< More than any that there ever was.
  /// The checkpoint (CheckpointDescription::id) that it is being restored from, so that some tables
  /// may be missing yet; 0: it is whole.
  uint64_t restoring = 0;
  /// Instances of the nodes that there ever were, as the placements number them.
  std::map<NodeId, uint64_t> nodes;
  std::map<uint32_t, FamilyRecord> families;  ///< Families by id, without the default one.
  uint32_t next_family = 1;                   ///< More than any that there ever was.
  std::map<uint64_t, std::pair<uint32_t, TableMeta>> tables;  ///< Tables by id, with their levels.
  std::map<uint64_t, LogSegment> segments;                    ///< Log segments by number.

  /// `Corruption` saying why the edit cannot be applied: it removes what is not there, adds to a
  /// level that there is not, contradicts itself, or is not the next one.
  Status Check(const ManifestEdit& edit) const;
  /// All of the edit, or, if Check fails, nothing.
  Status Apply(const ManifestEdit& edit);
  /// Apply of an edit that Check has passed.
  void ApplyChecked(const ManifestEdit& edit);

  /// The number of the family's levels; 0 if there is no such one.
  uint32_t LevelsOf(uint32_t family) const {
    if (family == 0) return num_levels;
    const auto it = families.find(family);
    return it != families.end() ? it->second.num_levels : 0;
  }

  /// Numbers the nodes anew: `numbers` says which node is what now. What lies on a node that is not
  /// in it lies on kLostNode from here on.
  void Renumber(const std::map<NodeId, NodeId>& numbers);
};

}  // namespace nacre
