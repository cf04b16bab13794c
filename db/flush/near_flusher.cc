#include "db/flush/near_flusher.h"

#include <algorithm>
#include <utility>

#include "db/space/reserved_outputs.h"
#include "jobs/job_client.h"
#include "nacre/statistics.h"
#include "pool/space/pending_writes.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {

namespace {

/// Bytes of keys and values.
constexpr uint64_t kMostBytes = 1 << 30;

}  // namespace

void NearFlusher::FallBack(FlushFallback why, const std::string& detail) {
  sites_.Count(why);
  const bool expected = why == FlushFallback::kSmall || why == FlushFallback::kSlower;
  Log(context_.options.info_log, expected ? LogLevel::kInfo : LogLevel::kWarn,
      "{}: a flush in this process ({}): {}", context_.name, NameOf(why), detail);
}

void NearFlusher::NoteFlush(bool near_data, uint64_t bytes, uint64_t nanos) {
  context_.counters.flushes.fetch_add(1, std::memory_order_relaxed);
  context_.counters.flush_bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (context_.options.statistics != nullptr) {
    context_.options.statistics->recordTick(FLUSH_WRITE_BYTES, bytes);
    context_.options.statistics->reportTimeToHistogram(FLUSH_TIME, nanos / 1000);
  }
  if (near_data) sites_.CountNearData();
  bool writers_wait = false;
  {
    MutexLock lock(&state_->mutex);
    writers_wait = state_->work.memtable_full;
  }
  chooser_.Flushed(near_data, bytes, nanos, writers_wait);
}

bool NearFlusher::Plan(const MemTable& memtable, SequenceNumber boundary, NearFlush* near) {
  if (context_.live.near_data_flush == NearDataFlush::kOff || writes_->log() == nullptr)
    return false;
  if (memtable.entries() == 0) return false;
  if (context_.keys != nullptr) return false;  // Nodes have no keys.
  const auto fall_back = [this](FlushFallback why, const std::string& detail) {
    FallBack(why, detail);
    return false;
  };
  if (!memtable.all_logged()) {
    return fall_back(FlushFallback::kUnlogged, "entries are not in this owner's log");
  }
  if (memtable.range_tombstones() != nullptr) {
    return fall_back(FlushFallback::kRangeDeletions, "there are range deletions");
  }
  const uint64_t bytes = memtable.data_bytes();
  if (context_.live.near_data_flush == NearDataFlush::kAuto) {
    if (bytes < context_.options.chunk_size) {
      return fall_back(FlushFallback::kSmall, std::to_string(bytes) + " bytes");
    }
    if (!chooser_.NearData()) {
      return fall_back(FlushFallback::kSlower, "writers wait, and nodes are slower");
    }
  }
  if (bytes > kMostBytes) {
    return fall_back(FlushFallback::kLarge, std::to_string(bytes) + " bytes");
  }
  // What a writer need not await may not be there yet.
  if (const Status status = writes_->log()->Sync(); !status.ok()) {
    return fall_back(FlushFallback::kLog, status.ToString());
  }
  near->last = boundary - 1;
  {
    MutexLock lock(&state_->mutex);
    near->first = state_->flushed + 1;
  }
  for (WrittenSegment& written : writes_->log()->SegmentsOf(near->first, near->last)) {
    const LogSegment& segment = written.segment;
    if (HasCopyOn(segment, [this](NodeId node) { return !context_.client->alive(node); })) {
      return fall_back(FlushFallback::kLostCopy, "log segment " + std::to_string(segment.number));
    }
    for (const ExtentAddr& copy : segment.copies) {
      near->local_bytes[copy.start.node] += written.bytes;
    }
    near->log.push_back(
        {.number = segment.number, .bytes = written.bytes, .copies = segment.copies});
  }
  return true;
}

bool NearFlusher::Flush(const PartFlush& flush, const MergeOptions& merge, FlushedRange* result) {
  const FlushPart& part = *flush.part;
  const NearFlush& near = *part.near;
  pool::FlushJob job;
  job.log = near.log;
  job.first = near.first;
  job.last = near.last;
  pool::CompactionJob& tables = job.merge;
  tables.database_id = context_.database_id;
  tables.family = part.family->id();
  tables.comparator_name = part.family->user_comparator()->Name();
  if (merge.merge_operator != nullptr) tables.merge_operator = merge.merge_operator->Id();
  tables.merged_bytes_max = merge.merged_bytes_max;
  tables.snapshots = merge.snapshots;
  tables.deeper = merge.deeper;
  tables.begin = merge.begin;
  tables.end = merge.end;
  tables.target_table_bytes = merge.target_table_bytes;
  tables.chunk_size = context_.options.chunk_size;
  tables.bloom_bits_per_key = merge.table.bloom_bits_per_key;
  tables.output_level = 0;
  tables.manifest_version = flush.manifest_version;
  tables.lineage = merge.table.lineage;
  const JobNeeds needs(tables);
  std::vector<NodeId> tried = context_.refusals.NodesWithout(*context_.client, needs);
  Status refusal = Status::Busy("no node has a thread for it");
  if (!tried.empty()) refusal = Status::NotSupported("what it needs is not known to the nodes");
  for (;;) {
    const NodeId executor =
        context_.executors.Take(*context_.client, context_.space, near.local_bytes, tried);
    if (executor == kNoNode) {
      FallBack(refusal.IsBusy() ? FlushFallback::kBusy : FlushFallback::kComparator,
               refusal.ToString());
      return false;
    }
    Executors::Turn turn(&context_.executors, executor);
    const uint32_t start = context_.client->start_id(executor);
    pool::JobEnd end;
    tables.outputs.assign(1, pool::ReservedTable());
    tables.outputs.front().id = context_.tables_begun.NewId();
    Status status = context_.Reserve(context_.redundancy.For(0), flush.bound, executor,
                                     &tables.outputs.front().placement);
    if (!status.ok()) {  // Which a flush here meets as well, and answers.
      FallBack(FlushFallback::kFailed, status.ToString());
      return false;
    }
    ReservedOutputs reserved(&context_.space, &end, &tables.outputs);
    NACRE_POINT("flush.space-reserved");
    pool::CompactionResult made;
    // A flush ends, also while the database closes, unless the next owner replays the log.
    status = pool::RunOnNode(context_.client, executor, job, &state_->handing_over, &made, &end);
    turn.Leave();
    if (status.IsAborted() && state_->handing_over.load(std::memory_order_relaxed)) {
      result->status = std::move(status);
      return true;
    }
    if (status.ok()) {
      result->near = true;
      result->stats = made.stats;
      if (!made.tables.empty()) reserved.Taken();
      TakeFlushedTables(&context_, *part.family, std::move(made.tables), {}, result);
      return true;
    }
    if (!status.IsBusy() && !status.IsNotSupported()) {
      FallBack(FlushFallback::kFailed, status.ToString());
      return false;
    }
    tried.push_back(executor);
    if (status.IsNotSupported()) context_.refusals.Add(executor, start, needs);
    refusal = std::move(status);
  }
}

}  // namespace nacre
