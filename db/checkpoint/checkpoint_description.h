#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "db/manifest/family_record.h"
#include "db/manifest/manifest_state.h"
#include "nacre/checkpoint.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"
#include "table/format/table_meta.h"

namespace nacre {

/// What one checkpoint consists of: what its file says, which is written when all else is there.
///
///     offset size
///          0    8  magic
///          8    4  format version
///         12    4  zero
///         16    8  bytes of the whole
///         24    8  checkpoint id, drawn
///         32    8  database id
///         40    8  sequence
///         48    8  manifest version
///         56    8  next table id
///         64    4  levels
///         68    4  tables
///                  database, comparator: each varint64 length and bytes
///                  of version 2, which has other column families than the default one:
///                  these (db/manifest/family_record.h)
///                  for each table: varint32 level, its meta without placement
///                  fixed32 CRC32C of everything before
struct CheckpointDescription {
  uint64_t id = 0;
  uint64_t database_id = 0;
  std::string database;  ///< Its name.
  /// Comparator of the default column family, to which the levels belong as well.
  std::string comparator;
  uint32_t num_levels = 0;
  std::map<uint32_t, FamilyRecord> families;  ///< Families without the default one.
  uint32_t next_family = 1;
  SequenceNumber sequence = 0;  ///< All up to here is in the tables.
  uint64_t manifest_version = 0;
  uint64_t next_table_id = 0;
  std::vector<std::pair<uint32_t, TableMeta>> tables;  ///< Tables with their levels.
  /// The key that its file is sealed with; then the files of its tables are sealed, too. Empty:
  /// neither is. Not part of what is encoded.
  std::string key_id;

  uint64_t bytes() const;  ///< Bytes of the tables.
  CheckpointInfo Info(uint64_t number) const;
  /// The initial state of a database that is restored from it: without tables.
  ManifestState InitialState() const;
};

inline constexpr uint64_t kDescriptionMagic = 0x31545048434b434e;  // "NCKCHPT1"

std::string EncodeCheckpointDescription(const CheckpointDescription& description);
/// Takes all of `bytes`. `Corruption` saying what is wrong, `NotSupported` for a newer format. Safe
/// on any bytes.
Status DecodeCheckpointDescription(const Slice& bytes, CheckpointDescription* description);

}  // namespace nacre
