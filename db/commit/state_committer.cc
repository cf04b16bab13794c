#include "db/commit/state_committer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "db/manifest/state_record.h"
#include "db/version/table_changes.h"
#include "pool/databases.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"
#include "util/uri.h"

namespace nacre {

Status StateCommitter::Open(ManifestState initial, std::unique_ptr<ManifestSlots> image,
                            const std::vector<ExtentAddr>& previous) {
  MutexLock commit(&mutex);
  for (const auto& [node, instance_id] : initial.nodes) recorded_nodes_.insert(node);
  membership_published_ = context_.client->membership_changes();
  ManifestLogOptions options;
  options.client = context_.client;
  options.clock = context_.clock;
  options.database_id = context_.database_id;
  options.epoch = context_.epoch;
  options.image_interval = context_.options.manifest_image_interval;
  options.image_edits = context_.options.manifest_image_edits;
  // Room for what there is between two image updates, as edits are large at most as a rule.
  constexpr uint64_t kEditBytes = 1 << 10;
  options.ring_bytes = std::min(options.ring_bytes, options.image_edits * kEditBytes);
  options.log = context_.options.info_log.get();
  NACRE_RETURN_IF_ERROR(
      ManifestLog::Create(options, std::move(initial), std::move(image), this, &manifest_));
  NACRE_POINT("open.manifest-created");
  // From here on no owner looks for the previous manifest.
  FreeReplicas(previous);
  return Status::OK();
}

void StateCommitter::TakeOver(const std::map<uint64_t, LogSegment>& segments, SequenceNumber last) {
  MutexLock commit(&mutex);
  for (const auto& [number, segment] : segments) {
    if (number == kStateRecordNumber) {
      state_record_ = segment;
    } else if (segment.kept) {
      kept_log_.Add(segment, last);
    } else {
      replayed_segments_.push_back(segment);
    }
  }
  replayed_ = last;
}

// ---- Changes ----------------------------------------------------------------------------------

Status StateCommitter::CommitEdit(ManifestEdit* edit) {
  // The next owner must not give an id anew that may be in a node's memory.
  edit->next_table_id = context_.tables_begun.next_id();
  const auto name_nodes = [&](const std::vector<ExtentAddr>& extents) REQUIRES(mutex) {
    for (const ExtentAddr& extent : extents) {
      const NodeId node = extent.start.node;
      if (node == kLostNode || recorded_nodes_.contains(node)) continue;
      edit->nodes[node] = context_.client->instance_id(node);
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
  for (const LogSegment& segment : unneeded_segments_) FreeReplicas(segment.copies);
  unneeded_segments_.clear();
  for (const auto& free : std::exchange(uncertain_, {})) free();
  return Status::OK();
}

Status StateCommitter::CheckReadable(const VersionEdit& change) const {
  for (const auto& added : change.added) {
    // A table that moves is in a version already.
    if (std::find(change.removed.begin(), change.removed.end(), added.table) !=
        change.removed.end()) {
      continue;
    }
    const Placement& placement = added.table->meta().placement;
    const auto lost = std::count_if(
        placement.fragments.begin(), placement.fragments.end(),
        [this](const ExtentAddr& extent) { return !context_.client->alive(extent.start.node); });
    if (lost > placement.redundancy.parity) {
      return Status::Unavailable("of new table " + std::to_string(added.table->id()) + " " +
                                 std::to_string(lost) +
                                 " fragments were lost before it was recorded");
    }
  }
  return Status::OK();
}

Status StateCommitter::Commit(std::span<FamilyEdit> changes, ManifestEdit* edit,
                              const std::function<void()>& install) {
  for (const FamilyEdit& change : changes) NACRE_RETURN_IF_ERROR(CheckReadable(change.edit));
  MutexLock commit(&mutex);
  for (FamilyEdit& change : changes) {
    if (change.family->dropped()) {
      change.DropTables();
      change.edit = VersionEdit();
    }
    DescribeTables(change.edit, edit);
  }
  NACRE_RETURN_IF_ERROR(CommitEdit(edit));
  MutexLock lock(&state_->mutex);
  state_->manifest_version = edit->version;
  try {
    install();
  } catch (...) {
    // The tables are the manifest's now, and the next owner has them: they are not given up.
    const Status why = StatusOfException();
    install_fault_.Set(why);
    stop_writes_(why);
    throw;
  }
  return Status::OK();
}

void StateCommitter::Free(const Status& failure, std::function<void()> free) {
  if (!MayBeDurable(failure)) return free();
  uncertain_.push_back(std::move(free));
}

void StateCommitter::GiveUp(std::span<const FamilyEdit> changes, const Status& failure) {
  const auto drop = [given_up = std::vector<FamilyEdit>(changes.begin(), changes.end())] {
    for (const FamilyEdit& each : given_up) each.DropTables();
  };
  // The tables need not wait for the mutex if their fate is certain.
  if (!MayBeDurable(failure)) return drop();
  MutexLock commit(&mutex);
  Free(failure, drop);
}

void StateCommitter::RecordState() {
  MutexLock commit(&mutex);
  RecordStateLocked();
}

void StateCommitter::RecordStateLocked() {
  if (Status status = TryRecordState(); !status.ok()) {
    Log(context_.options.info_log, LogLevel::kWarn,
        "{}: its state cannot be recorded, should the manifest have to be made anew: {}",
        context_.name, status.ToString());
  }
}

Status StateCommitter::TryRecordState() {
  TableLineage state;
  VersionList versions;
  {
    MutexLock lock(&state_->mutex);
    state = state_->BeginLineage(TableLineage::Kind::kState);
    versions = state_->CurrentVersions();
  }
  AddTables(versions, &state);
  const std::string bytes = EncodeStateRecord(context_.database_id, state);
  LogSegment record;
  record.number = kStateRecordNumber;
  NACRE_RETURN_IF_ERROR(ReserveReplicas(bytes.size(), &record.copies));
  Status status = WriteStateRecord(context_.client, record.copies, bytes);
  ManifestEdit edit;
  edit.segments_added.push_back(record);
  if (status.ok()) status = CommitEdit(&edit);
  if (status.ok()) std::swap(record, state_record_);
  Free(status, [this, copies = record.copies] { FreeReplicas(copies); });
  return status;
}

// ---- The log and the nodes --------------------------------------------------------------------

Status StateCommitter::ReserveReplicas(uint64_t bytes, std::vector<ExtentAddr>* copies) {
  Placement placement;
  const int copies_wanted =
      context_.redundancy.MostParity() + (NACRE_PLANTED_BUG("log.one-copy-too-few") ? 0 : 1);
  NACRE_RETURN_IF_ERROR(
      context_.Reserve(Redundancy::Copies(copies_wanted), bytes, kNoNode, &placement));
  *copies = std::move(placement.fragments);
  context_.copy_bytes.Add(*copies);
  return Status::OK();
}

void StateCommitter::FreeReplicas(const std::vector<ExtentAddr>& copies) {
  context_.copy_bytes.Remove(copies);
  for (const ExtentAddr& copy : copies) context_.space.Free(copy);
}

Status StateCommitter::PublishRoot(const std::string& value) {
  return context_.client->databases()->PublishRoot(context_.database_id, value);
}

Status StateCommitter::NewSegment(uint64_t number, uint64_t bytes, LogSegment* segment) {
  segment->number = number;
  Status status = ReserveReplicas(bytes, &segment->copies);
  if (!status.ok()) return status;
  NACRE_POINT("log.segment-reserved");
  MutexLock commit(&mutex);
  ManifestEdit edit;
  edit.segments_added.push_back(*segment);
  status = CommitEdit(&edit);
  if (!status.ok()) Free(status, [this, copies = segment->copies] { FreeReplicas(copies); });
  return status;
}

void StateCommitter::ReleaseLog(LogWriter* log, SequenceNumber flushed) {
  if (log == nullptr) return;
  // Without the mutex: the leader of the log may be waiting for a segment, which is committed.
  std::vector<LogSegment> unneeded = log->TakeUnneeded(flushed);
  MutexLock commit(&mutex);
  for (LogSegment& segment : unneeded) kept_log_.Add(std::move(segment), flushed);
  if (flushed >= replayed_) {
    for (LogSegment& segment : std::exchange(replayed_segments_, {})) {
      kept_log_.Add(std::move(segment), replayed_);
    }
  }
  DropKept(kept_log_.TakeUnneeded(KeptLogLimits()));
}

void StateCommitter::ReleaseKeptLog() {
  MutexLock commit(&mutex);
  DropKept(kept_log_.TakeUnneeded(KeptLogLimits()));
}

bool StateCommitter::GiveUpKeptLog() {
  MutexLock commit(&mutex);
  if (kept_log_.empty()) return false;
  Log(context_.options.info_log, LogLevel::kWarn,
      "{}: the pool is full: {} of the log that were kept for its readers are given up",
      context_.name, FormatBytes(kept_log_.bytes()));
  DropKept(kept_log_.TakeUnneeded({}));
  return true;
}

uint64_t StateCommitter::kept_log_bytes() {
  MutexLock commit(&mutex);
  return kept_log_.bytes();
}

KeptLog::Limits StateCommitter::KeptLogLimits() const {
  const uint64_t bytes = context_.options.WAL_size_limit_MB << 20;
  const uint64_t readers_bytes = context_.options.max_archive_lag_MB << 20;
  return {.bytes = bytes,
          .readers_bytes = std::max(bytes, readers_bytes),
          .needed = context_.log_readers.Needed()};
}

void StateCommitter::DropKept(std::vector<LogSegment> segments) {
  std::ranges::move(segments, std::back_inserter(unneeded_segments_));
  ManifestEdit edit;
  edit.segments_added = kept_log_.Unrecorded();
  if (unneeded_segments_.empty() && edit.segments_added.empty()) return;
  NACRE_POINT("log.segments-unneeded");
  if (Status status = CommitEdit(&edit); !status.ok()) {
    Log(context_.options.info_log, LogLevel::kWarn, "{}: {} segments of the log stay for now: {}",
        context_.name, unneeded_segments_.size(), status.ToString());
    return;
  }
  FreeReplicas(kept_log_.Recorded());
}

Status StateCommitter::DropLog(SequenceNumber last) {
  MutexLock commit(&mutex);
  std::set<uint64_t> unneeded;
  for (const LogSegment& segment : unneeded_segments_) unneeded.insert(segment.number);
  for (LogSegment& segment : manifest_->segments()) {
    if (segment.number == kStateRecordNumber || unneeded.contains(segment.number)) continue;
    kept_log_.Add(std::move(segment), last);
  }
  std::ranges::move(kept_log_.TakeUnneeded(KeptLogLimits()),
                    std::back_inserter(unneeded_segments_));
  // What is left is not recorded as kept: the next owner learns from it where the log ends.
  ManifestEdit edit;
  edit.last_sequence = last;
  return CommitEdit(&edit);
}

void StateCommitter::FollowNodes(const std::function<bool(NodeId)>& leave) {
  uint64_t published = 0;
  {
    MutexLock commit(&mutex);
    published = membership_published_;
    DropKept(kept_log_.LeaveNodes(leave));
    if (HasCopyOn(state_record_, leave)) {
      if (Status status = TryRecordState(); !status.ok()) {
        Log(context_.options.info_log, LogLevel::kWarn,
            "{}: the state record stays where it is: {}", context_.name, status.ToString());
      }
    }
  }
  const std::vector<ExtentAddr> copies = manifest_->copies();
  const bool move = std::any_of(copies.begin(), copies.end(),
                                [&](const ExtentAddr& copy) { return leave(copy.start.node); });
  // The next owner asks the nodes that the root names.
  const uint64_t membership = context_.client->membership_changes();
  if (!move && membership == published) return;
  NACRE_POINT("membership.changed");
  // Changes are committed meanwhile.
  if (Status status = manifest_->Renew(); !status.ok()) {
    Log(context_.options.info_log, LogLevel::kWarn, "{}: the manifest stays where it is: {}",
        context_.name, status.ToString());
    return;
  }
  MutexLock commit(&mutex);
  membership_published_ = membership;
  NACRE_POINT("membership.published");
}

}  // namespace nacre
