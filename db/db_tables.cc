#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "util/codes/crc32c.h"
#include "util/log.h"
#include "util/named_point.h"

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
    pinned->sequence = parts_.state.flushed;
    pinned->manifest_version = parts_.state.manifest_version;
  }
  // Who was replaced has not got the writes of his successor.
  NACRE_RETURN_IF_ERROR(parts_.context.CheckLease());
  pinned->next_table_id = parts_.context.next_table_id.load(std::memory_order_relaxed);
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
  return OpenAs(restoring, name, still, &checkpoint, db);
}

std::string DBImpl::RestoredLineage() {
  MutexLock lock(&parts_.state.mutex);
  // It replaces nothing, and tells of no tables: a manifest that is made anew from footers has what
  // is restored by the state record that ends the restore, and not before.
  return EncodeTableLineage(parts_.state.BeginLineage(TableLineage::Kind::kCompaction));
}

Status DBImpl::RestoreTable(uint32_t level, const TableMeta& original, const FillTable& fill) {
  Status status;
  // Each node that dies meanwhile costs one more try on those that are left.
  for (int attempt = 0; attempt <= parts_.context.client->node_count(); ++attempt) {
    const uint64_t begun = parts_.context.tables_begun.Begin();
    status = TryRestoreTable(level, original, fill);
    parts_.context.tables_begun.End(begun);
    parts_.state.RetireUnlinkedViews();
    if (!status.IsUnavailable()) break;
    Log(parts_.context.options.info_log, LogLevel::kWarn,
        "{}: restoring table {} is tried again: {}", parts_.context.name, original.id,
        status.ToString());
  }
  return parts_.context.ExplainFailure(std::move(status));
}

Status DBImpl::TryRestoreTable(uint32_t level, const TableMeta& original, const FillTable& fill) {
  const std::shared_ptr<const ColumnFamilySet> families = parts_.state.Families();
  const auto family = families->by_id.find(original.family);
  if (family == families->by_id.end()) {
    return Status::InvalidArgument("table " + std::to_string(original.id) +
                                   " is of column family " + std::to_string(original.family) +
                                   ", which there is not");
  }
  TableMeta meta = original;
  meta.database_id = parts_.context.database_id;
  meta.level = level;
  meta.part = 0;
  meta.last_part = true;
  std::string ending = RestoredLineage();
  meta.lineage.length = ending.size();
  meta.lineage.crc = Crc32c(ending.data(), ending.size());
  const auto size_now = [&] { return meta.lineage.offset + ending.size() + FooterBytes(meta); };
  // What the footer takes depends on the placement.
  meta.placement.fragments.resize(kMaxFragments);
  Placement placement;
  NACRE_RETURN_IF_ERROR(
      parts_.context.Reserve(parts_.context.redundancy.For(static_cast<int>(level)), size_now(),
                             kNoNode, &placement, meta.chunk_size));
  meta.placement = std::move(placement);
  meta.size = size_now();
  EncodeFooter(meta, &ending);

  std::string head;
  std::unique_ptr<ExtentWriter> writer;
  std::shared_ptr<TableHandle> handle;
  Status status = EncodeFragmentHead(meta, &head);
  if (status.ok()) {
    status = parts_.context.store.NewWriter(meta.id, meta.placement, meta.chunk_size, &writer);
  }
  if (status.ok()) status = fill(writer.get(), ending);
  if (status.ok()) status = writer->Finish(head);
  writer.reset();
  if (!status.ok()) parts_.context.space.EndAbandonedWrites();
  parts_.context.space.Trim(&meta.placement, meta.size);
  if (status.ok()) {
    status = TableHandle::OpenUnread(meta, family->second->user_comparator(),
                                     parts_.context.Surroundings(), &handle);
  }
  if (!status.ok()) {
    parts_.context.space.Free(meta.placement);
    return status;
  }
  NACRE_POINT("restore.table-written");
  FamilyEdit edit{.family = family->second, .edit = {}};
  edit.edit.added.push_back({static_cast<int>(level), std::move(handle)});
  ManifestEdit change;
  status = parts_.committer.Commit(
      {&edit, 1}, &change, [&]() REQUIRES(parts_.state.mutex) { parts_.state.Install(edit); });
  if (!status.ok()) parts_.committer.GiveUp({&edit, 1}, status);
  NACRE_POINT("restore.table-committed");
  return status;
}

Status DBImpl::EndRestore() {
  parts_.committer.RecordState();
  NACRE_POINT("restore.state-recorded");
  MutexLock commit(&parts_.committer.mutex);
  ManifestEdit edit;
  edit.restored = true;
  const Status status = parts_.committer.CommitEdit(&edit);
  NACRE_POINT("restore.ended");
  return status;
}

}  // namespace nacre
