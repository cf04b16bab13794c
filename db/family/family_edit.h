#pragma once

#include <memory>

#include "db/family/column_family.h"
#include "db/version/version.h"

namespace nacre {

/// A change of one family's tables.
struct FamilyEdit {
  std::shared_ptr<ColumnFamily> family;
  VersionEdit edit;
  uint64_t job = 0;  ///< Number of the flush or compaction; 0: tables only change their place.

  /// Frees the space of the tables that it would have added, which no reader has seen.
  void DropTables() const {
    for (const auto& added : edit.added) added.table->MarkDropped();
  }
};

}  // namespace nacre
