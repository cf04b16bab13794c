#include "db/table_changes.h"

#include <algorithm>

namespace nacre {

void DescribeTables(const VersionEdit& change, ManifestEdit* edit) {
  for (const auto& added : change.added) {
    edit->added.emplace_back(static_cast<uint32_t>(added.level), added.table->meta());
  }
  for (const auto& table : change.removed) {
    // A table that moves is removed from one level and added to another: there it is replaced.
    const bool stays =
        std::any_of(change.added.begin(), change.added.end(),
                    [&](const auto& added) { return added.table->id() == table->id(); });
    if (!stays) edit->removed.push_back(table->id());
  }
}

void AddTables(const VersionList& versions, TableLineage* lineage) {
  for (const auto& version : versions) {
    for (int level = 0; level < version->depth(); ++level) {
      for (const auto& table : version->tables(level)) {
        lineage->tables.emplace(table->id(), static_cast<uint32_t>(level));
      }
    }
  }
}

}  // namespace nacre
