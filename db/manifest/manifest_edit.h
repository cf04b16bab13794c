#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/manifest/family_record.h"
#include "db/wal/log_segments.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/table_meta.h"

namespace nacre {

/// One atomic change of a database's column families, its tables, the segments of its log, and the
/// nodes that these lie on. Only what is set changes.
///
/// No id is both added and removed, or removed twice, by one edit.
struct ManifestEdit {
  uint64_t version = 0;  ///< One more than that of the edit before; ManifestLog::Commit assigns it.
  /// Tables with their levels. One whose id exists already replaces that table (another level, a
  /// repaired placement).
  std::vector<std::pair<uint32_t, TableMeta>> added;
  std::vector<uint64_t> removed;  ///< Ids of tables.
  /// One whose number there is already replaces that.
  std::vector<LogSegment> segments_added;
  std::vector<uint64_t> segments_removed;
  /// High-water marks: the higher of this and what there was counts.
  std::optional<uint64_t> next_table_id;
  std::optional<SequenceNumber> last_sequence;
  /// Instance ids of nodes that came, as the placements number them.
  std::map<NodeId, uint64_t> nodes;
  /// New families by id, which was never used.
  std::map<uint32_t, FamilyRecord> families_added;
  /// Ids. All tables of such a family are removed, too.
  std::vector<uint64_t> families_dropped;
  bool restored = false;  ///< A restore has ended: the database is whole.
};

/// Appends the edit without its version, which is in the frame around it.
void EncodeManifestEdit(const ManifestEdit& edit, std::string* dst);
/// Takes all of `bytes`; leaves the version as it is. `Corruption` saying what is wrong,
/// `NotSupported` for a newer format. Safe on any bytes.
Status DecodeManifestEdit(const Slice& bytes, ManifestEdit* edit);

// What edits and images (db/manifest/manifest_slots.h) have in common.

/// Appends a varint32 level and the meta.
void EncodeLevelAndTable(uint32_t level, const TableMeta& meta, std::string* dst);
Status DecodeLevelAndTable(Slice* input, uint32_t* level, TableMeta* meta);
/// Appends varint64 number, varint32 number of copies, plus 256 if it is kept; for each copy,
/// fixed64 node << 48 | offset, varint64 length.
void EncodeLogSegment(const LogSegment& segment, std::string* dst);
Status DecodeLogSegment(Slice* input, LogSegment* segment);

}  // namespace nacre
