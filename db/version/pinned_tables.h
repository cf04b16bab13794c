#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "db/manifest/family_record.h"
#include "db/version/version.h"
#include "table/format/internal_key.h"

namespace nacre {

/// Tables that stay, and what the database is with just these.
struct PinnedTables {
  std::vector<VersionEdit::Added> tables;  ///< Upper levels first.
  SequenceNumber sequence = 0;             ///< All up to here is in them, and nothing later.
  uint64_t manifest_version = 0;
  uint64_t next_table_id = 0;
  std::map<uint32_t, FamilyRecord> families;  ///< The tables' families, without the default one.
  uint32_t next_family = 1;
  uint32_t num_levels = 0;  ///< Those of the default family.
};

}  // namespace nacre
