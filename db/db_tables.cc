#include <algorithm>
#include <utility>

#include "db/db_impl.h"

namespace nacre {

Status DBImpl::PinTables(PinnedTables* pinned) {
  NACRE_RETURN_IF_ERROR(parts_.flushes.Flush(FlushOptions(), /*only=*/nullptr));
  VersionList versions;
  {
    MutexLock lock(&parts_.state.mutex);
    // What a flush adds and how far it has come changes at once.
    versions = parts_.state.CurrentVersions();
    pinned->families = RecordsOf(*parts_.state.families);
    pinned->next_family = parts_.state.next_family;
    pinned->num_levels = static_cast<uint32_t>(num_levels());
    pinned->sequence = parts_.state.flushed;
    pinned->manifest_version = parts_.state.manifest_version;
  }
  // A replaced owner lacks the writes of its successor.
  NACRE_RETURN_IF_ERROR(parts_.context.CheckLease());
  pinned->next_table_id = parts_.context.tables_begun.next_id();
  pinned->tables.clear();
  ForEachTable(versions, [&](const auto& table, int level) {
    // After a repair from footers tables may be ahead of what the manifest knew.
    pinned->sequence = std::max(pinned->sequence, table->meta().largest_sequence);
    pinned->tables.push_back({level, table});
  });
  return Status::OK();
}

std::shared_ptr<TableHandle> DBImpl::FindTable(const TableMeta& meta) const {
  return nacre::FindTable(parts_.state.Versions(), meta);
}

Status DBImpl::OpenToRestore(const DBOptions& options, const std::string& name,
                             const std::vector<ColumnFamilyDescriptor>& families,
                             const ManifestState& checkpoint, std::unique_ptr<DBImpl>* db) {
  db->reset();
  DBOptions restoring = options;
  restoring.create_if_missing = true;
  restoring.error_if_exists = false;
  // What is merged has to be there first.
  std::vector<ColumnFamilyDescriptor> still = families;
  for (ColumnFamilyDescriptor& family : still) family.options.disable_auto_compactions = true;
  NACRE_RETURN_IF_ERROR(OpenAs(restoring, name, still, &checkpoint, db));
  (*db)->parts_.restoring = true;
  return Status::OK();
}

}  // namespace nacre
