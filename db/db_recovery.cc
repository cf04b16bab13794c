#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "db/log_reader.h"
#include "db/open_timeline.h"
#include "db/sorted_inserts.h"
#include "db/update_limits.h"
#include "db/write_batch_format.h"
#include "util/log.h"

namespace nacre {

namespace {

/// Until a database is open its process has little else to do, but a few threads are enough.
size_t OpeningThreads() {
  constexpr size_t kThreadsMax = 8;
  return std::min(Thread::HardwareConcurrency(), kThreadsMax);
}

}  // namespace

Status DBImpl::PlaceExtents(const memnode::DatabaseLease& lease, ManifestState* state,
                            std::vector<ExtentAddr>* copies) {
  // By instance, wherever it answers now: one that was started anew has nothing of ours.
  std::map<NodeId, NodeId> numbers;
  for (const auto& [node, instance_id] : state->nodes) {
    for (const auto& [present, slabs] : lease.slabs) {
      if (client_->instance_id(present) == instance_id) numbers[node] = present;
    }
  }
  state->Renumber(numbers);
  state->nodes.clear();
  for (const auto& [present, slabs] : lease.slabs) {
    state->nodes[present] = client_->instance_id(present);
  }
  std::erase_if(*copies,
                [&](const ExtentAddr& copy) { return !lease.slabs.contains(copy.start.node); });

  std::map<NodeId, std::vector<ExtentAddr>> live;
  bool whole = true;
  const auto use = [&](const std::vector<ExtentAddr>& extents) {
    for (const ExtentAddr& extent : extents) {
      whole = whole && extent.start.node != kLostNode;
      if (extent.start.node != kLostNode) live[extent.start.node].push_back(extent);
    }
  };
  size_t degraded = 0;
  for (const auto& [id, table] : state->tables) {
    whole = true;
    use(table.second.placement.fragments);
    if (!whole) ++degraded;
  }
  for (const auto& [number, segment] : state->segments) {
    use(segment.copies);
    CountCopies(segment.copies);
  }
  use(*copies);
  CountCopies(*copies);
  for (const auto& [node, slabs] : lease.slabs) {
    NACRE_RETURN_IF_ERROR(space_->Restore(node, slabs, live[node]));
  }
  if (degraded > 0) {
    Log(options_.info_log, LogLevel::kWarn,
        "{}: of {} of {} tables fragments are lost with nodes that are no longer there", name_,
        degraded, state->tables.size());
  }
  return Status::OK();
}

Status DBImpl::OpenTables(const ManifestState& state, VersionEdit* edit) {
  for (const auto& [id, table] : state.tables) {
    std::shared_ptr<TableHandle> handle;
    NACRE_RETURN_IF_ERROR(OpenTable(table.second, &handle));
    edit->added.push_back({static_cast<int>(table.first), std::move(handle)});
  }
  return Status::OK();
}

Status DBImpl::Recover(const memnode::DatabaseLease& lease, ManifestState state,
                       std::vector<ExtentAddr> copies, OpenTimeline* timeline) {
  NACRE_RETURN_IF_ERROR(PlaceExtents(lease, &state, &copies));
  timeline->EndStep("space");
  VersionEdit edit;
  NACRE_RETURN_IF_ERROR(OpenTables(state, &edit));
  timeline->EndStep("tables");
  const std::shared_ptr<MemTable> replayed = NewMemTable(sequencer_.generation());
  LogReadResult log;
  NACRE_RETURN_IF_ERROR(ReplayLog(state, replayed.get(), &log));
  timeline->EndStep("replay");
  // Only now: what is on nodes that cannot be reached is nowhere in it, and they may come back.
  {
    MutexLock commit(&commit_mutex_);
    for (const auto& [node, instance_id] : state.nodes) recorded_nodes_.insert(node);
    membership_published_ = client_->membership_changes();
    ManifestLogOptions options;
    options.client = client_;
    options.clock = clock_;
    options.database_id = database_id_;
    options.epoch = lease.epoch;
    options.checkpoint_interval = options_.manifest_checkpoint_interval;
    options.checkpoint_edits = options_.manifest_checkpoint_edits;
    options.log = options_.info_log.get();
    NACRE_RETURN_IF_ERROR(ManifestLog::Create(options, state, this, &manifest_));
  }
  // From here on nobody looks for the last owner's.
  FreeCopies(copies);
  timeline->EndStep("new-manifest");

  const SequenceNumber last = std::max(state.last_sequence, log.last_sequence);
  sequencer_.StartAfter(last);
  auto view = std::make_shared<ReadView>();
  view->memtables.push_back(replayed);
  view->version = Version::Apply(Version(&comparator_, options_.num_levels), edit);
  memtable_slots_[sequencer_.generation() % kMemTableSlots].store(replayed.get(),
                                                                  std::memory_order_release);
  {
    MutexLock lock(&mutex_);
    view_.store(view.get(), std::memory_order_release);
    current_view_ = std::move(view);
  }
  if (HasLog()) {
    NACRE_RETURN_IF_ERROR(OpenLog(state.next_segment, log));
    lease_ = std::make_unique<OwnerLease>(client_, database_id_);
    NACRE_RETURN_IF_ERROR(lease_->Start());
  }
  timeline->EndStep("log");
  {
    MutexLock commit(&commit_mutex_);
    for (const auto& [number, segment] : state.segments) replayed_segments_.push_back(segment);
    replayed_ = last;
    MutexLock lock(&mutex_);
    manifest_version_ = manifest_->version();
    // What is in the last owner's log is kept there until it is in tables.
    if (replayed->entries() > 0) SwitchMemTable();
    UpdateStall();
    MaybeSchedule();
  }
  if (replayed->entries() == 0) ReleaseLog(last);
  StartThreads();
  timeline->EndStep("threads");
  Log(options_.info_log, LogLevel::kInfo, "opened {} in {}: {} tables, sequence {}, in {} us",
      name_, pool_->uri(), state.tables.size(), last, timeline->TotalMicros());
  return Status::OK();
}

Status DBImpl::ReplayLog(const ManifestState& state, MemTable* memtable, LogReadResult* result) {
  std::vector<LogSegment> segments;
  for (const auto& [number, segment] : state.segments) segments.push_back(segment);
  if (segments.empty()) return Status::OK();
  const uint64_t start = clock_->NowNanos();
  SortedInserts inserts(options_.comparator);
  const auto replay = [&](SequenceNumber first, uint32_t count, const Slice& updates) -> Status {
    if (count == 0 || first + count - 1 <= state.last_sequence) return Status::OK();  // In tables.
    SequenceNumber sequence = first;
    NACRE_RETURN_IF_ERROR(ForEachEncodedUpdate(
        updates, count, [&](ValueType type, const Slice& key, const Slice& value) {
          inserts.Add(sequence++, type, key, value);
        }));
    return Status::OK();
  };
  ConcurrentArena buffers;  // What is to be inserted lies there.
  NACRE_RETURN_IF_ERROR(
      ReadLog(client_, database_id_, segments, options_.wal_recovery_mode, replay, result, &buffers)
          .WithContext("log of " + name_));
  inserts.InsertInto(memtable, OpeningThreads());
  for (const std::string& note : result->notes) {
    Log(options_.info_log, LogLevel::kWarn, "{}: log: {}", name_, note);
  }
  Log(options_.info_log, LogLevel::kInfo,
      "{}: replayed {} records, {} bytes of {} segments up to sequence {} in {} us", name_,
      result->records, result->bytes, segments.size(), result->last_sequence,
      (clock_->NowNanos() - start) / 1000);
  return Status::OK();
}

}  // namespace nacre
