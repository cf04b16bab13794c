#include "db/flush/memtable_flusher.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "db/version/table_changes.h"
#include "table/table_builder.h"
#include "util/coding.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {

std::vector<FlushPart> MemTableFlusher::PartsOf(const EndedGeneration& ended) {
  std::vector<FlushPart> parts;
  MutexLock lock(&state_->mutex);
  for (const auto& [id, family] : state_->families->by_id) {
    std::shared_ptr<MemTable> memtable = family->HoldMemTable(ended.generation);
    if (memtable == nullptr || memtable->entries() == 0) continue;
    FlushPart& part = parts.emplace_back();
    part.family = family;
    part.memtable = std::move(memtable);
  }
  return parts;
}

Status MemTableFlusher::Flush(const EndedGeneration& ended, std::vector<FamilyEdit>* edits) {
  // Writers that got their tickets before the switch may still be inserting.
  if (Status s = generations_->sequencer()->AwaitPublished(ended.boundary, writes_->why_stuck());
      !s.ok()) {
    NACRE_POINT("flush.given-up");
    return s.WithContext("writes are not published yet");
  }
  std::vector<FlushPart> parts = PartsOf(ended);
  for (const FlushPart& part : parts) part.memtable->Seal();
  bool near = false;
  for (FlushPart& part : parts) {
    NearFlush plan;
    if (!near_.Plan(*part.memtable, ended.boundary, &plan)) continue;
    part.near = std::move(plan);
    near = true;
  }
  Status status;
  // Each node that dies during the flush costs one more try on those that are left.
  for (int attempt = 0; attempt <= context_.client->node_count(); ++attempt) {
    status = TryFlush(&parts, ended.boundary, edits);
    for (FlushPart& part : parts) part.near.reset();
    if (std::exchange(near, false) && status.IsCorruption()) continue;  // What nodes made of it.
    if (!status.IsUnavailable() && !status.IsTimedOut()) break;
    Log(context_.options.info_log, LogLevel::kWarn, "{}: flush tries again: {}", context_.name,
        status.ToString());
  }
  return status;
}

Status MemTableFlusher::TryFlush(std::vector<FlushPart>* parts, SequenceNumber boundary,
                                 std::vector<FamilyEdit>* edits) {
  edits->clear();
  if (parts->empty()) return Status::OK();
  uint64_t manifest_version = 0;
  std::vector<SequenceNumber> snapshots;
  TableLineage lineage;
  VersionList all;
  std::vector<std::shared_ptr<const Version>> versions;
  {
    MutexLock lock(&state_->mutex);
    lineage = state_->BeginLineage(TableLineage::Kind::kFlush);
    snapshots = state_->snapshots.Sequences();
    all = state_->CurrentVersions();
    for (const FlushPart& part : *parts) versions.push_back(part.family->current_view()->version);
    manifest_version = state_->manifest_version + 1;
  }
  if (NACRE_PLANTED_BUG("snapshot.forgotten-by-a-flush")) snapshots.clear();

  lineage.ranges = 0;
  for (FlushPart& part : *parts) {
    const std::unique_ptr<InternalIterator> input = part.memtable->NewIterator();
    input->SeekToLast();
    part.last = input->user_key().ToString();
    input->SeekToFirst();
    part.first = input->user_key().ToString();
    part.cuts =
        part.memtable->Divide(FlushRangesMax(*part.memtable, context_.live.max_background_jobs));
    part.first_range = lineage.ranges;
    lineage.ranges += static_cast<uint32_t>(part.ranges());
  }
  AddTables(all, &lineage);
  lineage.through = boundary - 1;
  for (const FlushPart& part : *parts) context_.events.FlushBegins(*part.family, lineage.job);

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
    merge.cancelled = &state_->handing_over;
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

Status MemTableFlusher::PrepareFlush(uint64_t earlier, PartFlush* flush) {
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
  const uint64_t chunk = context_.options.chunk_size;
  flush->bound = FlushedTableBytes(memtable, count, largest_value, chunk) + besides;
  flush->least = LeastFlushedTableBytes(memtable, largest_value, chunk) + besides;
  flush->ranges.resize(count);
  bool pool_full = false;
  {
    MutexLock lock(&state_->mutex);
    pool_full = state_->work.pool_full;
  }
  return headroom_->CheckFlush(*part.family, flush->ReservedBytes(), earlier, pool_full);
}

void MemTableFlusher::FlushRanges(std::vector<PartFlush>* flushes, const TableLineage& lineage) {
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
    result->begun_nanos = context_.clock->NowNanos();
    result->status = CatchAll([&] {
      const bool done = part.near.has_value() && near_.Flush(*flush, range, result);
      if (!done) FlushRange(*flush, range, result);
      return result->status;
    });
    result->ended_nanos = context_.clock->NowNanos();
  };
  const auto jobs = static_cast<size_t>(std::max(1, context_.live.max_background_jobs.load()));
  std::atomic<size_t> next{0};
  RunTogether("nacre-flush", std::min(jobs, work.size()), [&](size_t /*thread*/) {
    for (size_t i = 0; (i = next.fetch_add(1, std::memory_order_relaxed)) < work.size();) {
      run(work[i].first, work[i].second);
    }
  });
}

Status MemTableFlusher::FinishFlush(PartFlush* flush, VersionEdit* edit) {
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
    near_.FallBack(FlushFallback::kFailed, status.ToString());
  }
  NACRE_RETURN_IF_ERROR(std::move(status));
  near_.NoteFlush(near_ranges == count, stats.bytes_written, ended - begun);
  Log(context_.options.info_log, LogLevel::kInfo,
      "{}: flushed {} entries of column family {}, {} bytes in {} ms, {} of {} "
      "ranges near the data",
      context_.name, stats.entries_written, flush->part->family->name(), stats.bytes_written,
      (ended - begun) / 1'000'000, near_ranges, count);
  return Status::OK();
}

void MemTableFlusher::FlushRange(const PartFlush& flush, const MergeOptions& merge,
                                 FlushedRange* result) {
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
  TakeFlushedTables(&context_, *part.family, std::move(tables), reserved, result);
}

Status MemTableFlusher::NewFlushOutput(const PartFlush& flush, TableMeta* identity,
                                       std::unique_ptr<ExtentWriter>* writer) {
  const ColumnFamily& family = *flush.part->family;
  Placement placement;
  const Redundancy& redundancy = context_.redundancy.For(0);
  Status reserved = context_.ReserveTable(redundancy, flush.bound, kNoNode, &placement);
  // Where no free range is as long there may be shorter ones, for smaller tables.
  for (uint64_t bytes = flush.bound / 2; reserved.IsNoSpace() && bytes >= flush.least; bytes /= 2) {
    reserved = context_.ReserveTable(redundancy, bytes, kNoNode, &placement);
  }
  NACRE_RETURN_IF_ERROR(std::move(reserved));
  identity->id = context_.tables_begun.NewId();
  identity->database_id = context_.database_id;
  identity->family = family.id();
  identity->level = 0;
  identity->comparator = family.user_comparator()->Name();
  identity->placement = std::move(placement);
  identity->manifest_version = flush.manifest_version;
  const Status status = context_.NewTable(identity, writer);
  if (!status.ok()) context_.space.Free(identity->placement);
  return status;
}

}  // namespace nacre
