#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "db/manifest/state_record.h"
#include "db/version/table_changes.h"
#include "pool/databases.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {

Status DBImpl::ReserveCopies(uint64_t bytes, std::vector<ExtentAddr>* copies) {
  Placement placement;
  const int copies_wanted =
      redundancy_.MostParity() + (NACRE_PLANTED_BUG("log.one-copy-too-few") ? 0 : 1);
  NACRE_RETURN_IF_ERROR(Reserve(Redundancy::Copies(copies_wanted), bytes, kNoNode, &placement));
  *copies = std::move(placement.fragments);
  context_.copy_bytes.Add(*copies);
  return Status::OK();
}

void DBImpl::FreeCopies(const std::vector<ExtentAddr>& copies) {
  context_.copy_bytes.Remove(copies);
  for (const ExtentAddr& copy : copies) space_->Free(copy);
}

Status DBImpl::PublishRoot(const std::string& value) {
  return client_->databases()->PublishRoot(database_id_, value);
}

Status DBImpl::CommitEdit(ManifestEdit* edit) {
  // Whoever opens the database next must not give an id anew that may be in a node's memory.
  edit->next_table_id = context_.next_table_id.load(std::memory_order_relaxed);
  const auto name_nodes = [&](const std::vector<ExtentAddr>& extents) REQUIRES(commit_mutex_) {
    for (const ExtentAddr& extent : extents) {
      const NodeId node = extent.start.node;
      if (node == kLostNode || recorded_nodes_.contains(node)) continue;
      edit->nodes[node] = client_->instance_id(node);
    }
  };
  for (const auto& [level, meta] : edit->added) name_nodes(meta.placement.fragments);
  for (const LogSegment& segment : edit->segments_added) name_nodes(segment.copies);
  for (const LogSegment& segment : unneeded_segments_) {
    edit->segments_removed.push_back(segment.number);
  }
  NACRE_RETURN_IF_ERROR(install_fault_.status());
  if (Status status = manifest_->Commit(edit); !status.ok()) {
    // Whether the edit is durable is the next owner's business then.
    return context_.ExplainFailure(std::move(status));
  }
  for (const auto& [node, instance] : edit->nodes) recorded_nodes_.insert(node);
  if (!unneeded_segments_.empty()) NACRE_POINT("log.segments-unrecorded");
  for (const LogSegment& segment : unneeded_segments_) FreeCopies(segment.copies);
  unneeded_segments_.clear();
  for (const auto& free : std::exchange(uncertain_, {})) free();
  return Status::OK();
}

Status DBImpl::CheckReadable(const VersionEdit& change) const {
  for (const auto& added : change.added) {
    // A table that moves is in a version already.
    if (std::find(change.removed.begin(), change.removed.end(), added.table) !=
        change.removed.end()) {
      continue;
    }
    const Placement& placement = added.table->meta().placement;
    const int lost = LostFragments(placement);
    if (lost > placement.redundancy.parity) {
      return Status::Unavailable("of new table " + std::to_string(added.table->id()) + " " +
                                 std::to_string(lost) +
                                 " fragments were lost before it was recorded");
    }
  }
  return Status::OK();
}

Status DBImpl::CommitChange(std::span<FamilyEdit> changes, ManifestEdit* edit,
                            const std::function<void()>& install) {
  for (const FamilyEdit& change : changes) NACRE_RETURN_IF_ERROR(CheckReadable(change.edit));
  MutexLock commit(&commit_mutex_);
  for (FamilyEdit& change : changes) {
    if (change.family->dropped()) {
      change.DropTables();
      change.edit = VersionEdit();
    }
    DescribeTables(change.edit, edit);
  }
  NACRE_RETURN_IF_ERROR(CommitEdit(edit));
  MutexLock lock(&state_.mutex);
  state_.manifest_version = edit->version;
  try {
    install();
  } catch (...) {
    // The tables are the manifest's now, and the next owner has them: they are not given up.
    const Status why = StatusOfException();
    install_fault_.Set(why);
    write_controller_.SetFault(why);
    throw;
  }
  return Status::OK();
}

void DBImpl::RecordState() {
  MutexLock commit(&commit_mutex_);
  if (Status status = TryRecordState(); !status.ok()) {
    Log(options_.info_log, LogLevel::kWarn,
        "{}: its state cannot be recorded, should the manifest have to be made anew: {}", name_,
        status.ToString());
  }
}

Status DBImpl::TryRecordState() {
  TableLineage state;
  VersionList versions;
  {
    MutexLock lock(&state_.mutex);
    state = state_.BeginLineage(TableLineage::Kind::kState);
    versions = state_.CurrentVersions();
  }
  AddTables(versions, &state);
  const std::string bytes = EncodeStateRecord(database_id_, state);
  LogSegment record;
  record.number = kStateRecordNumber;
  NACRE_RETURN_IF_ERROR(ReserveCopies(bytes.size(), &record.copies));
  Status status = WriteStateRecord(client_, record.copies, bytes);
  ManifestEdit edit;
  edit.segments_added.push_back(record);
  if (status.ok()) status = CommitEdit(&edit);
  if (status.ok()) std::swap(record, state_record_);
  if (MayBeDurable(status)) {
    uncertain_.emplace_back([this, record] { FreeCopies(record.copies); });
  } else {
    FreeCopies(record.copies);
  }
  return status;
}

void DBImpl::GiveUp(std::span<const FamilyEdit> changes, const Status& why) {
  const auto drop = [given_up = std::vector<FamilyEdit>(changes.begin(), changes.end())] {
    for (const FamilyEdit& each : given_up) each.DropTables();
  };
  if (!MayBeDurable(why)) return drop();
  // As long as it is not known whether the change is durable its tables stay as they are; whoever
  // opens the database next would find out.
  MutexLock commit(&commit_mutex_);
  uncertain_.emplace_back(drop);
}

Status DBImpl::NewSegment(uint64_t number, uint64_t bytes, LogSegment* segment) {
  segment->number = number;
  Status status = ReserveCopies(bytes, &segment->copies);
  if (status.ok()) {
    NACRE_POINT("log.segment-reserved");
    MutexLock commit(&commit_mutex_);
    ManifestEdit edit;
    edit.segments_added.push_back(*segment);
    status = CommitEdit(&edit);
    const auto free = [this, copies = segment->copies] { FreeCopies(copies); };
    if (MayBeDurable(status)) {
      uncertain_.emplace_back(free);
    } else if (!status.ok()) {
      free();
    }
  }
  return status;
}

void DBImpl::ReleaseLog(SequenceNumber flushed) {
  if (write_path_.log() == nullptr) return;
  // Without the mutex: who leads the log may be waiting for a segment, which is committed.
  std::vector<LogSegment> unneeded = write_path_.log()->TakeUnneeded(flushed);
  MutexLock commit(&commit_mutex_);
  const auto drop = [this](std::vector<LogSegment> segments) REQUIRES(commit_mutex_) {
    for (LogSegment& segment : segments) unneeded_segments_.push_back(std::move(segment));
  };
  drop(std::move(unneeded));
  if (flushed >= replayed_) drop(std::exchange(replayed_segments_, {}));
  if (unneeded_segments_.empty()) return;
  NACRE_POINT("log.segments-unneeded");
  ManifestEdit edit;
  if (Status status = CommitEdit(&edit); !status.ok()) {
    Log(options_.info_log, LogLevel::kWarn, "{}: {} segments of the log stay for now: {}", name_,
        unneeded_segments_.size(), status.ToString());
  }
}

Status DBImpl::DropLog() {
  MutexLock commit(&commit_mutex_);
  ManifestEdit edit;
  std::vector<ExtentAddr> copies;
  for (const LogSegment& segment : manifest_->segments()) {
    if (segment.number == kStateRecordNumber) continue;
    edit.segments_removed.push_back(segment.number);
    copies.insert(copies.end(), segment.copies.begin(), segment.copies.end());
  }
  unneeded_segments_.clear();  // They are among these.
  edit.last_sequence = generations_.sequencer()->LastPublished();
  NACRE_RETURN_IF_ERROR(CommitEdit(&edit));
  FreeCopies(copies);
  return Status::OK();
}

}  // namespace nacre
