#include "db/version/table_changes.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

namespace nacre {

void DescribeTables(const VersionEdit& change, ManifestEdit* edit) {
  std::unordered_set<uint64_t> added_ids;
  for (const auto& added : change.added) {
    edit->added.emplace_back(static_cast<uint32_t>(added.level), added.table->meta());
    added_ids.insert(added.table->id());
  }
  for (const auto& table : change.removed) {
    // A table that moves is removed from one level and added to another: there it is replaced.
    if (!added_ids.contains(table->id())) edit->removed.push_back(table->id());
  }
}

void AddTables(const VersionList& versions, TableLineage* lineage) {
  std::vector<std::pair<uint64_t, uint32_t>> tables;
  ForEachTable(versions, [&](const auto& table, int level) {
    tables.emplace_back(table->id(), static_cast<uint32_t>(level));
  });
  // Sorted, each takes its place in the map without a search.
  std::sort(tables.begin(), tables.end());
  for (const auto& table : tables) lineage->tables.emplace_hint(lineage->tables.end(), table);
}

}  // namespace nacre
