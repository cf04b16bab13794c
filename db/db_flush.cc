#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "db/compaction/manual_compaction.h"
#include "db/db_impl.h"
#include "db/version/table_changes.h"
#include "table/merge/merge_kernel.h"
#include "table/table_builder.h"
#include "util/coding.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"
#include "util/uri.h"

namespace nacre {

Status DBImpl::Flush(const FlushOptions& options, ColumnFamilyHandle* handle) {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(state_.FindFamily(handle, &family));
  // It may be dropped while others are waited for, and the handle destroyed.
  const std::shared_ptr<const ColumnFamily> held = family->shared_from_this();
  return FlushFamilies(options, family);
}

Status DBImpl::FlushFamilies(const FlushOptions& options, const ColumnFamily* only) try {
  MutexLock lock(&state_.mutex);
  if (closing_.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
  ++state_.work.flush_waiters;
  changed_.SignalAll();
  const Status status = FlushAndWait(options, only);
  --state_.work.flush_waiters;
  return status;
} catch (...) {
  return StatusOfException();
}

Status DBImpl::FlushAndWait(const FlushOptions& options, const ColumnFamily* only) {
  // An attempt that began earlier may have failed for a reason that is gone.
  const uint64_t earlier = state_.work.flush_attempts;
  // Full MemTables that wait keep their bound even against explicit flushes.
  const auto most = [this]() REQUIRES(state_.mutex) { return state_.MemTablesMax() - 1; };
  while (state_.work.immutables.size() >= most() &&
         (state_.work.flush_error.ok() || state_.work.flush_failed_attempt <= earlier)) {
    changed_.Wait();
  }
  if (state_.work.immutables.size() >= most()) return state_.work.flush_error;
  if (generations_.HasEntries(only)) generations_.Switch();
  if (state_.work.immutables.empty() || !options.wait) return Status::OK();
  const SequenceNumber boundary = state_.work.immutables.back().boundary;
  while (!state_.work.immutables.empty() && state_.work.immutables.front().boundary <= boundary &&
         (state_.work.flush_error.ok() || state_.work.flush_failed_attempt <= earlier)) {
    changed_.Wait();
  }
  const bool flushed =
      state_.work.immutables.empty() || state_.work.immutables.front().boundary > boundary;
  return flushed ? Status::OK() : state_.work.flush_error;
}

void DBImpl::MaybeSchedule() {
  if (state_.work.pauses > 0) return;
  // What cannot be scheduled is not running; both begin with the mutex.
  if ((!state_.work.immutables.empty() || state_.work.pool_full) && !state_.work.flush_running) {
    flush_executor_->Schedule([this] { FlushLoop(); });
    state_.work.flush_running = true;
  }
  if (!closing_.load(std::memory_order_relaxed) && state_.work.compactions_held == 0 &&
      state_.work.compactions_running < live_.most_compactions() && state_.CompactionDue()) {
    compaction_executor_->Schedule([this] { CompactionTask(); });
    ++state_.work.compactions_running;
  }
}

bool DBImpl::AwaitRoom(uint64_t room) {
  {
    MutexLock lock(&state_.mutex);
    while (state_.work.room_made == room && state_.work.RoomMayCome() &&
           !closing_.load(std::memory_order_relaxed)) {
      changed_.Wait();
    }
    if (state_.work.room_made != room) return true;
  }
  CompactForSpace();
  MutexLock lock(&state_.mutex);
  return state_.work.room_made != room;
}

void DBImpl::FlushLoop() {
  int failures = 0;
  for (;;) {
    Immutable oldest{};
    bool flushes = false;
    uint64_t attempt = 0;
    uint64_t room = 0;
    {
      MutexLock lock(&state_.mutex);
      const bool closing = closing_.load(std::memory_order_relaxed);
      const bool idle = state_.work.immutables.empty() && (closing || !state_.work.pool_full);
      if (idle || (closing && failures > 0) || state_.work.pauses > 0) {
        state_.work.flush_running = false;
        changed_.SignalAll();
        return;
      }
      flushes = !state_.work.immutables.empty();
      if (flushes) {
        oldest = state_.work.immutables.front();
        attempt = ++state_.work.flush_attempts;
      }
      room = state_.work.room_made;
    }
    if (!flushes) {
      WatchFullPool(room, &failures);
      continue;
    }
    std::vector<FamilyEdit> edits;
    NACRE_POINT("flush.begin");
    const uint64_t begun = context_.tables_begun.Begin();
    if (NACRE_PLANTED_BUG("log.released-before-the-flush"))
      committer_.ReleaseLog(write_path_.log(), oldest.boundary - 1);
    Status status = CatchAll([&] {
      Status written = FlushOne(oldest, &edits);
      NACRE_POINT("flush.tables-written");
      return written.ok() ? CommitFlush(oldest, &edits) : written;
    });
    context_.tables_begun.End(begun);
    status = context_.ExplainFailure(std::move(status));
    // A pool is full once nothing is left that could make room in it.
    if (status.IsNoSpace() && (AwaitRoom(room) || EnterFullPool())) continue;
    {
      MutexLock lock(&state_.mutex);
      state_.work.flush_error = status;
      if (status.ok()) {
        // In a full pool the pauses go on growing: few deletions are not worth a flush of their
        // own.
        if (!state_.work.pool_full) failures = 0;
      } else {
        Log(options_.info_log, LogLevel::kError, "{}: flush failed: {}", name_, status.ToString());
        events_.WorkFailed(BackgroundErrorReason::kFlush, status);
        state_.work.flush_failed_attempt = attempt;
        changed_.SignalAll();  // Writers that wait for room are told why there is none.
        state_.BackOff(DatabaseState::Work::kFlush, ++failures, room);
      }
    }
    NACRE_POINT("flush.committed");
    if (status.ok()) committer_.ReleaseLog(write_path_.log(), oldest.boundary - 1);
    NACRE_POINT("flush.log-released");
    edits.clear();
    state_.RetireUnlinkedViews();
    if (status.ok()) point_tiers_.Rebalance();
  }
}

Status DBImpl::CommitFlush(const Immutable& flushed, std::vector<FamilyEdit>* edits) {
  ManifestEdit change;
  change.last_sequence = flushed.boundary - 1;
  const Status status = committer_.Commit(*edits, &change, [&]() REQUIRES(state_.mutex) {
    state_.flushed = std::max(state_.flushed, flushed.boundary - 1);
    state_.work.flush_error = Status::OK();
    state_.work.immutables.pop_front();
    for (const auto& [id, family] : state_.families->by_id) {
      if (family->FindMemTable(flushed.generation) == nullptr) continue;
      std::shared_ptr<const Version> version = family->current_view()->version;
      for (const FamilyEdit& edit : *edits) {
        if (edit.family == family) version = Version::Apply(*version, edit.edit);
      }
      state_.InstallView(family.get(), family->MemTablesWithout(flushed.generation),
                         std::move(version));
      family->ForgetMemTable(flushed.generation);
    }
    if (state_.work.memtable_full) generations_.Switch();
    write_controller_.Update();
    // Before anybody can do anything with the tables.
    events_.FlushCompleted(*edits, ConditionOf(write_controller_.stall()));
    MaybeSchedule();
    changed_.SignalAll();
  });
  if (!status.ok()) committer_.GiveUp(*edits, status);
  return status;
}

std::vector<FlushPart> DBImpl::PartsOf(const Immutable& immutable) {
  std::vector<FlushPart> parts;
  MutexLock lock(&state_.mutex);
  for (const auto& [id, family] : state_.families->by_id) {
    std::shared_ptr<MemTable> memtable = family->HoldMemTable(immutable.generation);
    if (memtable == nullptr || memtable->entries() == 0) continue;
    FlushPart& part = parts.emplace_back();
    part.family = family;
    part.memtable = std::move(memtable);
  }
  return parts;
}

Status DBImpl::FlushOne(const Immutable& immutable, std::vector<FamilyEdit>* edits) {
  // Writers that got their tickets before the switch may still be inserting.
  if (Status s =
          generations_.sequencer()->AwaitPublished(immutable.boundary, write_path_.why_stuck());
      !s.ok()) {
    NACRE_POINT("flush.given-up");
    return s.WithContext("writes are not published yet");
  }
  std::vector<FlushPart> parts = PartsOf(immutable);
  bool near = false;
  for (FlushPart& part : parts) {
    NearFlush plan;
    if (!PlanNearFlush(*part.memtable, immutable.boundary, &plan)) continue;
    part.near = std::move(plan);
    near = true;
  }
  Status status;
  // Each node that dies during the flush costs one more try on those that are left.
  for (int attempt = 0; attempt <= client_->node_count(); ++attempt) {
    status = TryFlush(&parts, immutable.boundary, edits);
    for (FlushPart& part : parts) part.near.reset();
    if (std::exchange(near, false) && status.IsCorruption()) continue;  // What nodes made of it.
    if (!status.IsUnavailable() && !status.IsTimedOut()) break;
    Log(options_.info_log, LogLevel::kWarn, "{}: flush tries again: {}", name_, status.ToString());
  }
  return status;
}

Status DBImpl::TryFlush(std::vector<FlushPart>* parts, SequenceNumber boundary,
                        std::vector<FamilyEdit>* edits) {
  edits->clear();
  if (parts->empty()) return Status::OK();
  uint64_t manifest_version = 0;
  std::vector<SequenceNumber> snapshots;
  TableLineage lineage;
  VersionList all;
  std::vector<std::shared_ptr<const Version>> versions;
  {
    MutexLock lock(&state_.mutex);
    lineage = state_.BeginLineage(TableLineage::Kind::kFlush);
    snapshots = state_.snapshots.Sequences();
    all = state_.CurrentVersions();
    for (const FlushPart& part : *parts) versions.push_back(part.family->current_view()->version);
    manifest_version = state_.manifest_version + 1;
  }
  if (NACRE_PLANTED_BUG("snapshot.forgotten-by-a-flush")) snapshots.clear();

  lineage.ranges = 0;
  for (FlushPart& part : *parts) {
    const std::unique_ptr<InternalIterator> input = part.memtable->NewIterator();
    input->SeekToLast();
    part.last = input->user_key().ToString();
    input->SeekToFirst();
    part.first = input->user_key().ToString();
    part.cuts = part.memtable->Divide(FlushRangesMax(*part.memtable, live_.max_background_jobs));
    part.first_range = lineage.ranges;
    lineage.ranges += static_cast<uint32_t>(part.ranges());
  }
  AddTables(all, &lineage);
  lineage.through = boundary - 1;
  for (const FlushPart& part : *parts) events_.FlushBegins(*part.family, lineage.job);

  std::vector<PartFlush> flushes(parts->size());
  uint64_t reserved = 0;
  for (size_t i = 0; i < parts->size(); ++i) {
    const FlushPart& part = (*parts)[i];
    flushes[i].part = &part;
    flushes[i].manifest_version = manifest_version;
    MergeOptions& merge = flushes[i].merge;
    merge.comparator = part.family->user_comparator();
    merge.table.comparator = part.family->user_comparator();
    merge.table.bloom_bits_per_key = context_.BloomBitsPerKey();
    merge.table.lineage = EncodeTableLineage(lineage);
    merge.target_table_bytes = UINT64_MAX;
    merge.snapshots = snapshots;
    const Slice begin(part.first);
    const Slice end(part.last);
    // Range tombstones may reach further than the entries.
    const bool has_ranges = part.memtable->range_tombstones() != nullptr;
    merge.deeper = versions[i]->DeeperRanges(-1, &begin, has_ranges ? nullptr : &end);
    NACRE_RETURN_IF_ERROR(PrepareFlush(reserved, &flushes[i]));
    reserved += flushes[i].ReservedBytes();
  }
  FlushRanges(&flushes, lineage);

  Status status;
  for (PartFlush& flush : flushes) {
    FamilyEdit& edit = edits->emplace_back();
    edit.family = flush.part->family;
    edit.job = lineage.job;
    const Status finished = FinishFlush(&flush, &edit.edit);
    if (status.ok()) status = finished;
  }
  if (status.ok()) return status;
  for (const FamilyEdit& edit : *edits) edit.DropTables();
  edits->clear();
  return status;
}

Status DBImpl::PrepareFlush(uint64_t earlier, PartFlush* flush) {
  const FlushPart& part = *flush->part;
  MergeOptions& merge = flush->merge;
  const MemTable& memtable = *part.memtable;
  const uint64_t count = part.ranges();
  const uint64_t data_bytes = memtable.data_bytes();
  const uint64_t key_bytes = memtable.largest_key();
  /// Larger ones are left to compactions.
  constexpr uint64_t kMergedBytesMax = 1 << 20;
  const ColumnFamilyOptions& family = part.family->options();
  uint64_t largest_value = memtable.largest_value();
  if (memtable.operands() > 0 && family.merge_operator != nullptr) {
    merge.merge_operator = family.merge_operator.get();
    largest_value = std::max(largest_value, std::min(data_bytes, kMergedBytesMax));
    merge.merged_bytes_max = largest_value;
  }
  if (const RangeTombstoneList::Runs* runs = memtable.range_tombstones();
      runs != nullptr && !NACRE_PLANTED_BUG("table.range-deletion-forgotten-by-a-flush")) {
    merge.range_tombstones = std::make_shared<const RangeTombstones>(
        RangeTombstones::Merge(family.comparator, runs->All()));
  }
  const uint64_t besides =
      merge.table.lineage.size() + 2 * kMaxVarint64Bytes +
      (merge.range_tombstones == nullptr
           ? 0
           : 2 * merge.range_tombstones->EncodedBytesMax(merge.snapshots.size() + 1) +
                 8 * key_bytes);
  const uint64_t chunk = options_.chunk_size;
  flush->bound = FlushedTableBytes(memtable, count, largest_value, chunk) + besides;
  flush->least = LeastFlushedTableBytes(memtable, largest_value, chunk) + besides;
  flush->ranges.resize(count);
  bool pool_full = false;
  {
    MutexLock lock(&state_.mutex);
    pool_full = state_.work.pool_full;
  }
  return headroom_.CheckFlush(*part.family, flush->ReservedBytes(), earlier, pool_full);
}

void DBImpl::FlushRanges(std::vector<PartFlush>* flushes, const TableLineage& lineage) {
  std::vector<std::pair<PartFlush*, size_t>> work;
  for (PartFlush& flush : *flushes) {
    for (size_t i = 0; i < flush.ranges.size(); ++i) work.emplace_back(&flush, i);
  }
  const auto run = [&](PartFlush* flush, size_t i) {
    const FlushPart& part = *flush->part;
    FlushedRange* const result = &flush->ranges[i];
    MergeOptions range = flush->merge;
    TableLineage of_range = lineage;
    of_range.range = part.first_range + static_cast<uint32_t>(i);
    range.table.lineage = EncodeTableLineage(of_range);
    if (i > 0) range.begin = part.cuts[i - 1];
    if (i < part.cuts.size()) range.end = part.cuts[i];
    result->begun_nanos = clock_->NowNanos();
    result->status = CatchAll([&] {
      const bool done = part.near.has_value() && FlushRangeNear(*flush, range, result);
      if (!done) FlushRange(*flush, range, result);
      return result->status;
    });
    result->ended_nanos = clock_->NowNanos();
  };
  const auto jobs = static_cast<size_t>(std::max(1, live_.max_background_jobs.load()));
  std::atomic<size_t> next{0};
  RunTogether("nacre-flush", std::min(jobs, work.size()), [&](size_t /*thread*/) {
    for (size_t i = 0; (i = next.fetch_add(1, std::memory_order_relaxed)) < work.size();) {
      run(work[i].first, work[i].second);
    }
  });
}

Status DBImpl::FinishFlush(PartFlush* flush, VersionEdit* edit) {
  const MemTable& memtable = *flush->part->memtable;
  const uint64_t count = flush->ranges.size();
  Status status;
  MergeStats stats;
  uint64_t near_ranges = 0;
  uint64_t begun = UINT64_MAX;
  uint64_t ended = 0;
  for (FlushedRange& range : flush->ranges) {
    if (status.ok()) status = range.status;
    stats.entries_read += range.stats.entries_read;
    stats.bytes_read += range.stats.bytes_read;
    stats.entries_written += range.stats.entries_written;
    stats.bytes_written += range.stats.bytes_written;
    near_ranges += range.near ? 1 : 0;
    begun = std::min(begun, range.begun_nanos);
    ended = std::max(ended, range.ended_nanos);
    for (auto& table : range.tables) edit->added.push_back({0, std::move(table)});
  }
  // What nodes found in the log are the MemTable's entries, and each was in one range.
  if (status.ok() && near_ranges > 0 &&
      (stats.entries_read != memtable.entries() || stats.bytes_read != memtable.data_bytes())) {
    status = Status::Corruption(
        "a flush took " + std::to_string(stats.entries_read) + " entries of " +
        std::to_string(stats.bytes_read) + " bytes from the log, the MemTable has " +
        std::to_string(memtable.entries()) + " of " + std::to_string(memtable.data_bytes()));
    FallBack(FlushFallback::kFailed, status.ToString());
  }
  NACRE_RETURN_IF_ERROR(std::move(status));
  NoteFlush(near_ranges == count, stats.bytes_written, ended - begun);
  Log(options_.info_log, LogLevel::kInfo,
      "{}: flushed {} entries of column family {}, {} bytes in {} ms, {} of {} "
      "ranges near the data",
      name_, stats.entries_written, flush->part->family->name(), stats.bytes_written,
      (ended - begun) / 1'000'000, near_ranges, count);
  return Status::OK();
}

void DBImpl::FlushRange(const PartFlush& flush, const MergeOptions& merge, FlushedRange* result) {
  const FlushPart& part = *flush.part;
  std::vector<Placement> reserved;
  const auto new_output = [&](TableMeta* identity, std::unique_ptr<ExtentWriter>* writer) {
    const Status status = NewFlushOutput(flush, identity, writer);
    if (status.ok()) reserved.push_back(identity->placement);
    return status;
  };
  const std::unique_ptr<InternalIterator> input = part.memtable->NewIterator();
  std::vector<TableMeta> tables;
  result->status = MergeTables(input.get(), merge, new_output, &tables, &result->stats);
  TakeTables(*part.family, std::move(tables), reserved, result);
}

void DBImpl::TakeTables(const ColumnFamily& family, std::vector<TableMeta> tables,
                        const std::vector<Placement>& reserved, FlushedRange* result) {
  Status& status = result->status;
  if (!status.ok()) space_->EndAbandonedWrites();
  // Outputs come in order; what was reserved for a table that was not finished goes back.
  for (size_t i = tables.size(); i < reserved.size(); ++i) space_->Free(reserved[i]);
  for (TableMeta& meta : tables) {
    space_->Trim(&meta.placement, meta.size);
    std::shared_ptr<TableHandle> handle;
    if (status.ok()) {
      status = CatchAll([&] {
        NACRE_RETURN_IF_ERROR(context_.OpenTable(family.user_comparator(), meta, &handle));
        result->tables.push_back(std::move(handle));
        return Status::OK();
      });
    }
    if (!status.ok()) {
      space_->Free(meta.placement);
    }
  }
}

Status DBImpl::NewFlushOutput(const PartFlush& flush, TableMeta* identity,
                              std::unique_ptr<ExtentWriter>* writer) {
  const ColumnFamily& family = *flush.part->family;
  Placement placement;
  Status reserved = context_.Reserve(redundancy_.For(0), flush.bound, kNoNode, &placement);
  // Where no free range is as long there may be shorter ones, for smaller tables.
  for (uint64_t bytes = flush.bound / 2; reserved.IsNoSpace() && bytes >= flush.least; bytes /= 2) {
    reserved = context_.Reserve(redundancy_.For(0), bytes, kNoNode, &placement);
  }
  NACRE_RETURN_IF_ERROR(std::move(reserved));
  identity->id = context_.NewTableId();
  if (Status status = store_->NewWriter(identity->id, placement, options_.chunk_size, writer);
      !status.ok()) {
    space_->Free(placement);
    return status;
  }
  identity->database_id = database_id_;
  identity->family = family.id();
  identity->level = 0;
  identity->comparator = family.user_comparator()->Name();
  identity->placement = std::move(placement);
  identity->manifest_version = flush.manifest_version;
  return Status::OK();
}

}  // namespace nacre
