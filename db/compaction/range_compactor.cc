#include "db/compaction/range_compactor.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "db/compaction/job_plugins.h"
#include "db/space/reserved_outputs.h"
#include "db/write/update_limits.h"
#include "jobs/job_client.h"
#include "nacre/statistics.h"
#include "pool/space/pending_writes.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {

namespace {

/// What nodes have of the job's input.
std::map<NodeId, uint64_t> LocalBytes(const pool::CompactionJob& job) {
  std::map<NodeId, uint64_t> local_bytes;
  for (const auto& run : job.runs) {
    for (const auto& meta : run) {
      const Placement& placement = meta->placement;
      // Parity is not read.
      const size_t read =
          placement.redundancy.striped() ? placement.redundancy.data : placement.fragments.size();
      for (size_t i = 0; i < std::min(read, placement.fragments.size()); ++i) {
        local_bytes[placement.fragments[i].start.node] += placement.fragments[i].length;
      }
    }
  }
  return local_bytes;
}

/// Records of smaller tables are not aligned at all.
constexpr uint64_t kLeastAlignedBytes = 16 << 20;

/// A merged value is at most such a part of a table: room for one is reserved in each.
constexpr uint64_t kMergedPart = 4;

/// As many key ranges as may be asked for.
constexpr uint64_t kPiecesMax = 256;

/// So many keys are looked at for each share of the bytes when a compaction is cut.
constexpr uint64_t kKeysInShare = 16;

/// Outputs of fewer largest records than this go into one table: room for one more is reserved in
/// each of several.
constexpr uint64_t kRecordsInTable = 8;

/// How often what is reserved is doubled after a job that needed more: gaps at the ends of chunks
/// may take more of the outputs than they took of the inputs, and values that an operator or a
/// filter makes may be of any size, so for these the largest record counts eight times as much.
constexpr int kDoublingsMax = 3;
constexpr int kDoublingsMaxOfNewValues = 10;

/// How much more a section of range tombstones may take once it is merged with others.
constexpr uint64_t kFragmentedPart = 8;

/// Whether outputs may have larger records than inputs.
bool MakesValues(const pool::CompactionJob& job) {
  return !job.compaction_filter.empty() || !job.merge_operator.empty();
}

/// As far as can be told, no key is longer: those of most long records are in the range index. A
/// job that meets a longer one may have to be done again.
uint64_t LargestKeyOf(const TableMeta& meta) {
  constexpr uint64_t kShortRecord = 4 << 10;
  return std::min({meta.largest_record, kMaxUserKeyBytes, meta.range_index.length + kShortRecord});
}

uint64_t OutputBound(uint64_t input_bytes) { return input_bytes + input_bytes / 16; }

std::vector<std::shared_ptr<const TableMeta>> Metas(const TableList& tables) {
  std::vector<std::shared_ptr<const TableMeta>> metas;
  metas.reserve(tables.size());
  // The handle keeps its meta as long as the compaction holds the handle.
  for (const auto& table : tables) metas.emplace_back(table, &table->meta());
  return metas;
}

}  // namespace

uint64_t RangeCompactor::PiecesOf(const Compaction& compaction) const {
  if (compaction.max_subcompactions > 0) return compaction.max_subcompactions;
  if (const uint32_t pieces = context_.live.max_subcompactions; pieces > 0) return pieces;
  if (context_.live.compaction == CompactionSite::kCompute) return 1;
  const uint64_t tables = compaction.InputBytes() /
                          compaction.family->picker().TargetTableBytes(compaction.output_level);
  if (tables < 2) return 1;
  const uint64_t idle = context_.executors.IdleWorkers(context_.client, context_.space);
  return std::clamp<uint64_t>(idle, 1, std::min(tables, kPiecesMax));
}

std::vector<std::string> RangeCompactor::Cut(const Compaction& compaction) const {
  if (!compaction.cuts.empty()) return compaction.cuts;
  const uint64_t pieces = PiecesOf(compaction);
  if (pieces == 1) return {};
  uint64_t largest_record = 0;
  for (const TableList* tables : {&compaction.inputs, &compaction.overlap}) {
    for (const auto& table : *tables) {
      largest_record = std::max(largest_record, table->meta().largest_record);
    }
  }
  // Room for the largest record is reserved for each.
  const uint64_t share =
      std::max(compaction.InputBytes() / pieces + 1, kRecordsInTable * largest_record);
  const std::vector<KeyWeight> keys = WeighKeys(compaction, share / kKeysInShare + 1);
  const InternalKeyComparator& comparator = compaction.family->comparator();
  std::vector<std::string> cuts;
  uint64_t collected = 0;
  for (const KeyWeight& key : keys) {
    const std::string& last = cuts.empty() ? keys.front().user_key : cuts.back();
    if (collected >= share && comparator.CompareUserKeys(last, key.user_key) < 0) {
      cuts.push_back(key.user_key);
      collected = 0;
    }
    collected += key.bytes;
  }
  return cuts;
}

std::vector<RangeCompactor::KeyWeight> RangeCompactor::WeighKeys(const Compaction& compaction,
                                                                 uint64_t part_bytes) {
  std::vector<KeyWeight> keys;
  for (const TableList* tables : {&compaction.inputs, &compaction.overlap}) {
    for (const auto& table : *tables) {
      std::vector<std::string> within;
      // Without its index a table is not cut; the job that reads it says why it cannot be read.
      table->reader().CutKeys(part_bytes, &within).IgnoreError();
      const uint64_t bytes = table->size() / (within.size() + 1);
      keys.push_back({table->meta().smallest_user_key().ToString(), bytes});
      for (std::string& key : within) keys.push_back({std::move(key), bytes});
    }
  }
  const InternalKeyComparator& comparator = compaction.family->comparator();
  std::stable_sort(keys.begin(), keys.end(), [&](const KeyWeight& a, const KeyWeight& b) {
    return comparator.CompareUserKeys(a.user_key, b.user_key) < 0;
  });
  return keys;
}

Status RangeCompactor::Run(const Compaction& compaction, const TableLineage& lineage,
                           const std::optional<std::string>& begin,
                           const std::optional<std::string>& end, TableList* outputs) {
  pool::CompactionJob job;
  job.lineage = EncodeTableLineage(lineage);
  job.database_id = context_.database_id;
  job.family = compaction.family->id();
  job.comparator_name = compaction.family->user_comparator()->Name();
  if (compaction.level == 0) {
    // A flush is one run, however many tables it made.
    for (size_t i = 0; i < compaction.inputs.size();) {
      TableList flush;
      do {
        flush.push_back(compaction.inputs[i++]);
      } while (i < compaction.inputs.size() &&
               compaction.inputs[i]->meta().manifest_version == flush[0]->meta().manifest_version);
      job.runs.push_back(Metas(flush));
    }
  } else {
    job.runs.push_back(Metas(compaction.inputs));
  }
  if (!compaction.overlap.empty()) job.runs.push_back(Metas(compaction.overlap));
  job.compaction_filter = CompactionFilterName(compaction.family->options());
  job.filter_context.column_family_id = compaction.family->id();
  job.filter_context.is_manual_compaction = compaction.manual;
  job.filter_context.is_full_compaction =
      compaction.inputs.size() + compaction.overlap.size() == compaction.version->CountTables();
  job.begin = begin;
  job.end = end;
  job.chunk_size = context_.chunk_bytes;
  job.table_keys = context_.keys.get();
  job.bloom_bits_per_key = context_.BloomBitsPerKey();
  job.output_level = static_cast<uint32_t>(compaction.output_level);
  {
    MutexLock lock(&state_->mutex);
    job.snapshots = state_->snapshots.Sequences();
    job.manifest_version = state_->manifest_version + 1;
  }
  TableList all = compaction.inputs;
  all.insert(all.end(), compaction.overlap.begin(), compaction.overlap.end());
  auto [first, last] = UserKeyRange(compaction.family->comparator(), all);
  if (begin.has_value()) first = *begin;
  if (end.has_value()) last = *end;
  job.deeper = compaction.version->DeeperRanges(compaction.output_level, &first, &last);
  const bool has_operands = std::any_of(
      all.begin(), all.end(), [](const auto& table) { return table->meta().has_operands; });
  const auto& merge_operator = compaction.family->options().merge_operator;
  if (has_operands && merge_operator != nullptr) {
    job.merge_operator = merge_operator->Id();
  }

  uint64_t bytes = 0;
  NACRE_RETURN_IF_ERROR(BytesBetween(all, begin, end, &bytes));
  return Execute(*compaction.family, &job, all, bytes, outputs);
}

Status RangeCompactor::BytesBetween(const TableList& tables,
                                    const std::optional<std::string>& begin,
                                    const std::optional<std::string>& end, uint64_t* bytes) const {
  *bytes = 0;
  for (const auto& table : tables) {
    uint64_t from = 0;
    uint64_t to = table->size();
    std::string key;
    if (begin.has_value()) {
      AppendInternalKey(&key, *begin, PackTag(kMaxSequenceNumber, kValueTypeForSeek));
      NACRE_RETURN_IF_ERROR(table->reader().ApproximateOffset(key, &from));
    }
    if (end.has_value()) {
      key.clear();
      AppendInternalKey(&key, *end, PackTag(kMaxSequenceNumber, kValueTypeForSeek));
      NACRE_RETURN_IF_ERROR(table->reader().ApproximateOffset(key, &to));
    }
    const bool whole = !begin.has_value() && !end.has_value();
    if (to > from) *bytes += whole ? to - from : to - from + 2 * context_.options.chunk_size;
  }
  return Status::OK();
}

Status RangeCompactor::Copy(const TableCopy& copy, TableList* outputs) {
  pool::CompactionJob job;
  job.database_id = context_.database_id;
  job.family = copy.family->id();
  job.comparator_name = copy.family->user_comparator()->Name();
  job.window = copy.window;
  job.begin = copy.begin;
  job.end = copy.end;
  job.chunk_size = context_.chunk_bytes;
  job.table_keys = context_.keys.get();
  job.bloom_bits_per_key = context_.BloomBitsPerKey();
  job.output_level = static_cast<uint32_t>(copy.level);
  TableList all;
  bool has_operands = false;
  uint64_t largest_record = 0;
  for (const TableList& run : copy.runs) {
    job.runs.push_back(Metas(run));
    for (const auto& table : run) {
      has_operands = has_operands || table->meta().has_operands;
      largest_record = std::max(largest_record, table->meta().largest_record);
      all.push_back(table);
    }
  }
  if (const auto& merging = copy.family->options().merge_operator;
      has_operands && merging != nullptr) {
    job.merge_operator = merging->Id();
  }
  {
    MutexLock lock(&state_->mutex);
    job.manifest_version = state_->manifest_version + 1;
    // It replaces nothing: see TableRestorer.
    job.lineage = EncodeTableLineage(state_->BeginLineage(TableLineage::Kind::kCompaction));
  }
  if (copy.covers_more) {
    const auto [first, last] = UserKeyRange(copy.family->comparator(), all);
    job.deeper.push_back({.smallest = first.ToString(), .largest = last.ToString()});
  }
  uint64_t bytes = 0;
  NACRE_RETURN_IF_ERROR(BytesBetween(all, copy.begin, copy.end, &bytes));
  if (copy.window.after > 0) {
    constexpr uint64_t kEntryOverhead = 128;  // Its parts of the indexes, and gaps.
    // Few of the entries may be new.
    const uint64_t entries = copy.window.up_to - copy.window.after;
    bytes = std::min(bytes,
                     entries * (largest_record + kEntryOverhead) + 2 * context_.options.chunk_size);
  }
  return Execute(*copy.family, &job, all, bytes, outputs);
}

Status RangeCompactor::ReserveOutputs(uint64_t output_bytes, int doublings, uint64_t target,
                                      NodeId preferred, pool::CompactionJob* job) {
  uint64_t largest_record = 0;
  uint64_t largest_key = 0;
  uint64_t range_deletion_bytes = 0;
  for (const auto& run : job->runs) {
    for (const auto& meta : run) {
      largest_record = std::max(largest_record, meta->largest_record);
      largest_key = std::max(largest_key, LargestKeyOf(*meta));
      range_deletion_bytes += meta->range_deletions.length;
    }
  }
  // Where tombstones of different tables overlap, they are cut at one another's ends, and each
  // piece has a sequence for each snapshot at most.
  range_deletion_bytes *= kFragmentedPart + 2 * job->snapshots.size();
  output_bytes <<= doublings;
  if (MakesValues(*job)) {
    largest_record = std::min(largest_record << 3 * doublings, kMaxRecordBytes);
  }
  const uint64_t merged_bytes_max = std::max(largest_record, target / kMergedPart);
  // Room for the largest record is reserved in each table, so there had better be few of them.
  const bool one_table =
      4 * largest_record > target && output_bytes <= kRecordsInTable * largest_record;
  target = std::max(target, 4 * largest_record);
  // Every table but the last nearly reaches the target before it is cut (its size is estimated to
  // within a chunk), and exceeds it by one record, the rest of a chunk and its indexes at most.
  // Keys are repeated in the range index and the footer.
  if (!job->merge_operator.empty()) largest_record = merged_bytes_max;
  job->merged_bytes_max = merged_bytes_max;
  const uint64_t record = largest_record + 4 * largest_key;
  const uint64_t slack = record + 2 * context_.options.chunk_size + kOutputSlackBytes +
                         job->lineage.size() + range_deletion_bytes;
  uint64_t capacity = target + target / 16 + slack;
  if (one_table) {
    // Its records are those of the inputs, so none comes on top.
    capacity = output_bytes + slack - (MakesValues(*job) ? 0 : largest_record);
    target = std::max(target, capacity);
  }
  // Where a table may be a little larger than a power of two, its records would be aligned twice as
  // coarsely as in one that may not: up to 4 bytes a record at 64 MiB. Cut when no other record is
  // sure to fit, it ends where its last row does, of which the parity is as long whatever it holds.
  const Redundancy& wanted_redundancy =
      context_.redundancy.For(static_cast<int>(job->output_level));
  const Redundancy redundancy = context_.Allowed(wanted_redundancy);
  const uint64_t row = redundancy.data * context_.options.chunk_size;
  const uint64_t finer = std::bit_floor(capacity) / row * row;
  if (finer >= kLeastAlignedBytes - row && finer + row > target && capacity - finer < finer / 4 &&
      slack < finer / 16) {
    capacity = finer;
    target = finer - record - job->lineage.size();
  }
  capacity = std::min(capacity, output_bytes + slack);
  // Each output has the whole lineage, which grows with the number of tables; that of its inputs
  // may be much shorter. So what is as long as the target is the rest.
  job->target_table_bytes = target + job->lineage.size();
  const uint64_t least = target - std::min<uint64_t>(target / 4, 2 * context_.options.chunk_size);
  const uint64_t count = one_table || output_bytes < least ? 1 : output_bytes / least + 2;
  for (uint64_t wanted = count * capacity; wanted > 0;) {
    pool::ReservedTable table;
    table.id = context_.tables_begun.NewId();
    const Status status =
        context_.ReserveTable(wanted_redundancy, capacity, preferred, &table.placement);
    if (status.ok()) {
      job->outputs.push_back(std::move(table));
      wanted -= std::min(wanted, capacity);
      continue;
    }
    // In a full pool smaller tables may find room, and less may survive than could: a compaction
    // that drops versions has to run where the worst case does not fit.
    if (status.IsNoSpace() && capacity / 2 > slack) {
      capacity /= 2;
      continue;
    }
    if (status.IsNoSpace() && !job->outputs.empty()) break;
    return status;
  }
  return Status::OK();
}

Status RangeCompactor::Execute(const ColumnFamily& family, pool::CompactionJob* job,
                               const TableList& inputs, uint64_t input_bytes, TableList* outputs) {
  const uint64_t target = family.picker().TargetTableBytes(static_cast<int>(job->output_level));
  const std::map<NodeId, uint64_t> local_bytes = LocalBytes(*job);
  const JobNeeds needs(*job);
  const bool is_piece = job->begin.has_value() || job->end.has_value();
  std::vector<NodeId> tried = context_.refusals.NodesWithout(*context_.client, needs);
  // Nodes have no keys.
  const bool here = context_.live.compaction == CompactionSite::kCompute ||
                    !job->window.everything() || context_.keys != nullptr;
  const int most_doublings = MakesValues(*job) ? kDoublingsMaxOfNewValues : kDoublingsMax;
  int doublings = 0;
  Status status;
  for (;;) {
    // This process, when no node can.
    const NodeId executor =
        here ? kNoNode
             : context_.executors.Take(
                   *context_.client, context_.space, local_bytes, tried,
                   is_piece ? Executors::Choice::kIdle : Executors::Choice::kNear);
    Executors::Turn turn(&context_.executors, executor);
    // Before the node is asked: another process of it may answer, never an earlier one.
    const uint32_t start = executor == kNoNode ? 0 : context_.client->start_id(executor);
    const int alive = context_.client->alive_count();
    const uint64_t pace_changes = context_.client->pace_changes();
    pool::CompactionResult result;
    pool::JobEnd end;
    job->outputs.clear();
    ReservedOutputs reserved_outputs(&context_.space, &end, &job->outputs);
    status = ReserveOutputs(OutputBound(input_bytes), doublings, target, executor, job);
    const bool reserved = status.ok();
    NACRE_POINT("compaction.space-reserved");
    if (reserved && executor != kNoNode) {
      status = pool::RunOnNode(context_.client, executor, *job, &state_->closing, &result, &end);
    } else if (reserved) {
      status = CatchAll([&] {
        return pool::RunCompaction(*job, LocalPlugins(family.options(), *job), &context_.store,
                                   &state_->closing, &result);
      });
    }
    turn.Leave();
    if (!reserved) return status;
    if (!status.ok()) result.tables.clear();
    if (!status.ok() && executor == kNoNode) context_.space.EndAbandonedWrites();
    for (const pool::DamagedTable& damaged : result.damaged) {
      for (const auto& input : inputs) {
        if (input->id() == damaged.id) input->ReportDamage(damaged.fragments);
      }
    }
    for (TableMeta& meta : result.tables) {
      context_.space.Trim(reserved_outputs.Next(), meta.size);
      meta.placement = *reserved_outputs.Next();
      context_.counters.compaction_bytes_written.fetch_add(meta.size, std::memory_order_relaxed);
      std::shared_ptr<TableHandle> handle;
      if (status.ok()) status = context_.OpenTable(family.user_comparator(), meta, &handle);
      if (status.ok()) {
        outputs->push_back(std::move(handle));
        reserved_outputs.Taken();
      } else {
        reserved_outputs.FreeNext();
      }
    }
    if (status.ok()) {
      context_.counters.compaction_bytes_read.fetch_add(input_bytes, std::memory_order_relaxed);
      if (context_.options.statistics != nullptr) {
        for (const auto& table : *outputs) {
          context_.options.statistics->recordTick(COMPACT_WRITE_BYTES, table->size());
        }
        context_.options.statistics->recordTick(COMPACT_READ_BYTES, input_bytes);
        context_.options.statistics->reportTimeToHistogram(COMPACTION_CPU_TIME,
                                                           result.cpu_nanos / 1000);
      }
      context_.counters.compaction_cpu_nanos.fetch_add(result.cpu_nanos, std::memory_order_relaxed);
      return status;
    }
    for (const auto& table : *outputs) table->MarkDropped();
    outputs->clear();
    Log(context_.options.info_log, LogLevel::kWarn, "{}: compaction on {}: {}", context_.name,
        executor == kNoNode ? "the compute node" : context_.client->node_address(executor),
        status.ToString());
    // The space was that which was reserved: once more, with more of it.
    if (status.IsNoSpace() && doublings < most_doublings) {
      ++doublings;
      continue;
    }
    // Whatever keeps a node from the job, it need not keep the next one; damage and the loss of
    // the database do.
    const bool elsewhere = executor != kNoNode ? !status.IsCorruption() && !status.IsFenced()
                                               : status.IsUnavailable() || status.IsTimedOut();
    if (!elsewhere || state_->closing.load(std::memory_order_relaxed)) return status;
    if (executor != kNoNode) {
      tried.push_back(executor);
      if (status.IsNotSupported()) context_.refusals.Add(executor, start, needs);
    } else if (context_.client->alive_count() == alive &&
               context_.client->pace_changes() == pace_changes) {
      return status;  // Each node that dies or becomes slow meanwhile costs one more try.
    }
  }
}

}  // namespace nacre
