#include "db/copy/database_copier.h"

#include <algorithm>
#include <map>
#include <utility>

#include "db/checkpoint/table_restorer.h"
#include "db/family/column_family.h"
#include "db/family/hidden_family.h"
#include "db/space/reserved_outputs.h"
#include "util/exceptions.h"
#include "util/named_point.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

/// ManifestState::restoring of a database that is being copied; checkpoints have other ids.
constexpr uint64_t kCopying = 0x6e61637265'636f70;

/// The tables of one family that have what is copied, as runs, newest first.
std::vector<TableList> RunsOf(uint32_t family, const PinnedTables& pinned,
                              const SequenceWindow& window) {
  std::vector<TableList> runs;
  std::map<int, size_t> run_of_level;
  for (const VersionEdit::Added& added : pinned.tables) {
    const TableMeta& meta = added.table->meta();
    if (meta.family != family) continue;
    if (window.after > 0 && meta.largest_sequence <= window.after) continue;
    if (added.level == 0) {
      // A flush is one run, however many tables it made.
      const bool same_flush = !runs.empty() && run_of_level.empty() &&
                              runs.back().front()->meta().manifest_version == meta.manifest_version;
      if (!same_flush) runs.emplace_back();
      runs.back().push_back(added.table);
      continue;
    }
    const auto [run, is_new] = run_of_level.try_emplace(added.level, runs.size());
    if (is_new) runs.emplace_back();
    runs[run->second].push_back(added.table);
  }
  return runs;
}

/// Where tables of everything go: as deep as they were.
int DepthOf(uint32_t family, const PinnedTables& pinned) {
  int depth = 1;
  for (const VersionEdit::Added& added : pinned.tables) {
    if (added.table->meta().family == family) depth = std::max(depth, added.level);
  }
  return depth;
}

}  // namespace

DatabaseCopier::DatabaseCopier(DBImpl* source, std::vector<Target> targets)
    : source_(source), targets_(std::move(targets)) {}

DatabaseCopier::~DatabaseCopier() {
  if (snapshot_ != nullptr) source_->ReleaseSnapshot(snapshot_);
  HoldCompactions(false);
}

void DatabaseCopier::HoldCompactions(bool hold) {
  if (std::exchange(holds_compactions_, hold) == hold) return;
  DatabaseState& state = source_->parts()->state;
  MutexLock lock(&state.mutex);
  state.work.compactions_held += hold ? 1 : -1;
  state.work.copies += hold ? 1 : -1;
  source_->parts()->write_controller.Update();
  state.changed.SignalAll();
  if (!hold) state.MaybeSchedule();
}

Status DatabaseCopier::OpenTarget(DBImpl* source, const DBOptions& options, const std::string& name,
                                  const std::vector<ColumnFamilyDescriptor>& families,
                                  std::unique_ptr<DBImpl>* target) {
  ManifestState state;
  {
    DatabaseState& from = source->parts()->state;
    MutexLock lock(&from.mutex);
    state.families = RecordsOf(*from.families);
    state.next_family = from.next_family;
  }
  state.comparator = source->comparator()->Name();
  state.num_levels = source->num_levels();
  state.restoring = kCopying;
  return DBImpl::OpenToRestore(options, name, families, state, target);
}

Status DatabaseCopier::ReopenTarget(const DBOptions& options, const std::string& name,
                                    const std::vector<ColumnFamilyDescriptor>& families,
                                    std::unique_ptr<DBImpl>* target) {
  ManifestState state;
  state.restoring = kCopying;
  return DBImpl::OpenToRestore(options, name, families, state, target);
}

void DatabaseCopier::StartWritesAfter(SequenceNumber sequence, DBImpl* target) {
  target->parts()->generations.sequencer()->StartAfter(sequence);
}

Status DatabaseCopier::Finish(DBImpl* target) { return TableRestorer(target->parts()).End(); }

Status DatabaseCopier::Round(uint64_t* entries) {
  // Before the snapshot, so that what runs still has nothing that the next round copies.
  if (snapshot_ != nullptr) HoldCompactions(true);
  // Before the flush: see the invariant.
  const Snapshot* const taken = source_->GetSnapshot();
  PinnedTables pinned;
  Status status = source_->PinTables(&pinned);
  const SequenceWindow window{.after = copied_, .up_to = taken->GetSequenceNumber()};
  *entries = window.up_to - window.after;
  if (status.ok() && (snapshot_ == nullptr || *entries > 0)) {
    NACRE_POINT("copy.round-begun");
    std::vector<Status> statuses(targets_.size());
    RunTogether("nacre-copy", targets_.size(), [&](size_t i) {
      statuses[i] = CatchAll([&] { return CopyTo(targets_[i], pinned, window); });
    });
    for (Status& each : statuses) {
      if (status.ok()) status = std::move(each);
    }
  }
  if (!status.ok()) {
    source_->ReleaseSnapshot(taken);
    return status;
  }
  copied_ = window.up_to;
  if (snapshot_ != nullptr) source_->ReleaseSnapshot(snapshot_);
  snapshot_ = taken;
  return Status::OK();
}

Status DatabaseCopier::CopyTo(const Target& target, const PinnedTables& pinned,
                              const SequenceWindow& window) {
  const std::shared_ptr<const ColumnFamilySet> families = source_->parts()->state.Families();
  for (const auto& [id, family] : families->by_id) {
    if (family->name() == kPreparedFamilyName) continue;
    NACRE_RETURN_IF_ERROR(CopyFamily(target, *family, pinned, window));
  }
  return Status::OK();
}

Status DatabaseCopier::CopyFamily(const Target& target, const ColumnFamily& from,
                                  const PinnedTables& pinned, const SequenceWindow& window) {
  DatabaseParts* const parts = target.db->parts();
  TableCopy copy{.family = nullptr,
                 .runs = RunsOf(from.id(), pinned, window),
                 .window = window,
                 .begin = target.begin,
                 .end = target.end};
  if (copy.runs.empty()) return Status::OK();
  std::shared_ptr<ColumnFamily> into;
  for (const auto& [id, family] : parts->state.Families()->by_id) {
    if (family->name() == from.name()) into = family;
  }
  if (into == nullptr) {
    return Status::InvalidArgument("column family " + from.name() + " is not in " +
                                   parts->context.name);
  }
  copy.family = into.get();
  copy.covers_more = window.after > 0;
  if (window.after == 0) {
    copy.level = std::min(DepthOf(from.id(), pinned), static_cast<int>(into->num_levels()) - 1);
  }
  const uint64_t begun = parts->context.tables_begun.Begin();
  UnseenTables outputs;
  outputs.lists()->resize(1);
  Status status = CatchAll([&] {
    return RangeCompactor(&parts->context, &parts->state).Copy(copy, &outputs.lists()->front());
  });
  if (status.ok()) {
    FamilyEdit edit{.family = into, .edit = {}};
    for (const auto& table : outputs.lists()->front()) {
      edit.edit.added.push_back({copy.level, table});
    }
    outputs.Keep();
    ManifestEdit change;
    change.last_sequence = window.up_to;
    status = parts->committer.Commit({&edit, 1}, &change, [&]() REQUIRES(parts->state.mutex) {
      parts->state.flushed = std::max(parts->state.flushed, window.up_to);
      parts->state.Install(edit);
    });
    if (!status.ok()) parts->committer.GiveUp({&edit, 1}, status);
  }
  parts->context.tables_begun.End(begun);
  parts->state.RetireUnlinkedViews();
  return parts->context.ExplainFailure(std::move(status));
}

}  // namespace nacre
