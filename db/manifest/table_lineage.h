#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/manifest/family_record.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"

namespace nacre {

/// What a table tells of the database that it was made in, so that the manifest can be made anew
/// from tables alone (db/salvage/table_choice.h): the state when the flush or compaction that made
/// it began, and what that was to replace. A freed table keeps its bytes until its space is used
/// again; a later table that does not have it among `tables` is what says that it is dead.
struct TableLineage {
  enum class Kind : uint8_t {
    kFlush = 1,
    kCompaction = 2,
    kState = 3,  ///< Belongs to no table: a state record (db/manifest/state_record.h).
  };

  Kind kind = Kind::kFlush;
  uint64_t epoch = 0;  ///< Epoch of the owner.
  /// Number of the flush or compaction; later ones of that owner have higher numbers. Each attempt
  /// of a flush counts.
  uint64_t job = 0;
  uint32_t range = 0;  ///< Number among the key ranges that it was cut into.
  uint32_t ranges = 1;
  SequenceNumber through = 0;    ///< For a flush: it has all updates up to this one.
  std::vector<uint64_t> inputs;  ///< For a compaction: the ids of its inputs.

  // The state when it began.
  uint64_t base_version = 0;            ///< Version of the manifest.
  SequenceNumber flushed = 0;           ///< All up to this one is in tables.
  std::map<uint64_t, uint32_t> tables;  ///< Ids and levels.
  uint32_t num_levels = 0;              ///< Levels of the default column family.
  // Told by databases that have, or had, other column families than the default one; the comparator
  // by state records, too.
  std::string comparator;                     ///< Name of the default family's comparator.
  std::map<uint32_t, FamilyRecord> families;  ///< Families without the default one.
  uint32_t next_family = 1;
  uint64_t slab_bytes = 0;

  bool operator==(const TableLineage&) const = default;
};

/// Layout in docs/formats.md, "Lineage".
std::string EncodeTableLineage(const TableLineage& lineage);
/// Takes all of `bytes`. `Corruption` saying what is wrong, `NotSupported` for another format. Safe
/// on any bytes.
Status DecodeTableLineage(const Slice& bytes, TableLineage* lineage);

}  // namespace nacre
