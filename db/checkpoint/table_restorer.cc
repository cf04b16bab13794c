#include "db/checkpoint/table_restorer.h"

#include <utility>

#include "table/seal/sealed_extent.h"
#include "table/seal/table_keys.h"
#include "util/codes/crc32c.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {

std::string TableRestorer::NewLineage() {
  MutexLock lock(&parts_.state.mutex);
  // It replaces nothing, and tells of no tables: a manifest that is made anew from footers has what
  // is restored by the state record that ends the restore, and not before.
  return EncodeTableLineage(parts_.state.BeginLineage(TableLineage::Kind::kCompaction));
}

Status TableRestorer::Restore(uint32_t level, const TableMeta& original, const FillTable& fill) {
  Status status;
  // Each node that dies meanwhile costs one more try on those that are left.
  for (int attempt = 0; attempt <= context_.client->node_count(); ++attempt) {
    const uint64_t begun = context_.tables_begun.Begin();
    status = TryRestore(level, original, fill);
    context_.tables_begun.End(begun);
    parts_.state.RetireUnlinkedViews();
    if (!status.IsUnavailable()) break;
    Log(context_.options.info_log, LogLevel::kWarn, "{}: restoring table {} is tried again: {}",
        context_.name, original.id, status.ToString());
  }
  return context_.ExplainFailure(std::move(status));
}

Status TableRestorer::TryRestore(uint32_t level, const TableMeta& original, const FillTable& fill) {
  const std::shared_ptr<const ColumnFamilySet> families = parts_.state.Families();
  const auto family = families->by_id.find(original.family);
  if (family == families->by_id.end()) {
    return Status::InvalidArgument("table " + std::to_string(original.id) +
                                   " is of column family " + std::to_string(original.family) +
                                   ", which there is not");
  }
  TableMeta meta = original;
  meta.database_id = context_.database_id;
  meta.level = level;
  meta.part = 0;
  meta.last_part = true;
  std::string ending = NewLineage();
  meta.lineage.length = ending.size();
  meta.lineage.crc = Crc32c(ending.data(), ending.size());
  if (context_.keys != nullptr) {
    NACRE_RETURN_IF_ERROR(context_.keys->SealNew(&meta));
    NACRE_RETURN_IF_ERROR(meta.seal->WithBounds(meta.smallest, meta.largest, &meta.seal));
    meta.chunk_size = StoredBytes(original.chunk_size);
  }
  const auto size_now = [&] {
    const uint64_t plain = meta.lineage.offset + ending.size() + FooterBytes(meta);
    return meta.sealed() ? StoredBytes(plain) : plain;
  };
  // What the footer takes depends on the placement.
  meta.placement.fragments.resize(kMaxFragments);
  Placement placement;
  NACRE_RETURN_IF_ERROR(context_.Reserve(context_.redundancy.For(static_cast<int>(level)),
                                         size_now(), kNoNode, &placement, meta.chunk_size));
  meta.placement = std::move(placement);
  meta.size = size_now();
  EncodeFooter(meta, &ending);

  std::string head;
  std::unique_ptr<ExtentWriter> writer;
  std::shared_ptr<TableHandle> handle;
  Status status = EncodeFragmentHead(meta, &head);
  if (status.ok()) {
    std::unique_ptr<ExtentWriter> stored;
    status = context_.store.NewWriter(meta.id, meta.placement, meta.chunk_size, &stored);
    if (status.ok()) writer = PlainWriter(meta, std::move(stored));
  }
  if (status.ok()) status = fill(writer.get(), ending);
  if (status.ok()) status = writer->Finish(head);
  writer.reset();
  if (!status.ok()) context_.space.EndAbandonedWrites();
  context_.space.Trim(&meta.placement, meta.size);
  if (status.ok()) {
    status = TableHandle::OpenUnread(meta, family->second->user_comparator(),
                                     context_.Surroundings(), &handle);
  }
  if (!status.ok()) {
    context_.space.Free(meta.placement);
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

Status TableRestorer::End() {
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
