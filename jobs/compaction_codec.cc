#include <fmt/format.h>

#include <cassert>
#include <memory>
#include <string>
#include <utility>

#include "jobs/job_codec.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/extent_codec.h"
#include "table/format/table_meta.h"

namespace nacre::pool {
namespace {

constexpr uint32_t kMaxBloomBits = 100;

Status MalformedCompaction(std::string_view what) {
  return Status::InvalidArgument(fmt::format("compaction job: {}", what));
}

Status DecodeTable(const std::string& bytes, TableMeta* meta) {
  Slice input(bytes);
  NACRE_RETURN_IF_ERROR(DecodeTableMeta(&input, meta));
  if (!input.empty()) return Status::Corruption("bytes after the description of a table");
  return Status::OK();
}

}  // namespace

void EncodeJob(const CompactionJob& job, control::Compact* message) {
  assert(job.window.everything());
  message->set_comparator_name(job.comparator_name);
  for (const auto& run : job.runs) {
    control::SortedRun* encoded = message->add_runs();
    for (const auto& table : run) EncodeTableMeta(*table, encoded->add_tables());
  }
  for (const SequenceNumber snapshot : job.snapshots) message->add_snapshots(snapshot);
  for (const KeyRange& range : job.deeper) {
    control::KeyRange* encoded = message->add_deeper();
    encoded->set_smallest(range.smallest);
    encoded->set_largest(range.largest);
  }
  if (job.begin.has_value()) message->set_begin(*job.begin);
  if (job.end.has_value()) message->set_end(*job.end);
  message->set_target_table_bytes(job.target_table_bytes);
  message->set_chunk_size(job.chunk_size);
  message->set_output_level(job.output_level);
  message->set_manifest_version(job.manifest_version);
  message->set_bloom_bits_per_key(static_cast<uint32_t>(job.bloom_bits_per_key));
  message->set_lineage(job.lineage);
  message->set_family(job.family);
  message->set_merge_operator(job.merge_operator);
  message->set_merged_bytes_max(job.merged_bytes_max);
  message->set_compaction_filter(job.compaction_filter);
  message->set_is_full_compaction(job.filter_context.is_full_compaction);
  message->set_is_manual_compaction(job.filter_context.is_manual_compaction);
  for (const ReservedTable& output : job.outputs) {
    control::ReservedTable* encoded = message->add_outputs();
    encoded->set_id(output.id);
    EncodePlacement(output.placement, encoded->mutable_placement());
  }
}

Status DecodeJob(const control::Compact& message, CompactionJob* job) {
  NACRE_RETURN_IF_ERROR(DecodeMerge(message, job));
  return job->runs.empty() ? MalformedCompaction("no input") : Status::OK();
}

Status DecodeMerge(const control::Compact& message, CompactionJob* job) {
  job->database_id = message.header().database_id();
  job->comparator_name = message.comparator_name();
  for (const control::SortedRun& run : message.runs()) {
    auto& decoded = job->runs.emplace_back();
    for (const std::string& table : run.tables()) {
      auto meta = std::make_shared<TableMeta>();
      NACRE_RETURN_IF_ERROR(DecodeTable(table, meta.get()).WithContext("compaction job"));
      decoded.push_back(std::move(meta));
    }
  }
  for (const uint64_t snapshot : message.snapshots()) {
    if (snapshot > kMaxSequenceNumber ||
        (!job->snapshots.empty() && snapshot < job->snapshots.back())) {
      return MalformedCompaction("snapshots are not in order");
    }
    job->snapshots.push_back(snapshot);
  }
  for (const control::KeyRange& range : message.deeper()) {
    job->deeper.push_back({.smallest = range.smallest(), .largest = range.largest()});
  }
  if (message.has_begin()) job->begin = message.begin();
  if (message.has_end()) job->end = message.end();
  job->target_table_bytes = message.target_table_bytes();
  job->chunk_size = message.chunk_size();
  if (job->target_table_bytes == 0) return MalformedCompaction("target size 0");
  if (job->chunk_size == 0 || job->chunk_size > kMaxChunkBytes) {
    return MalformedCompaction(fmt::format("chunks of {} bytes", job->chunk_size));
  }
  job->output_level = message.output_level();
  job->manifest_version = message.manifest_version();
  if (message.bloom_bits_per_key() > kMaxBloomBits) {
    return MalformedCompaction("filters of absurd size");
  }
  job->bloom_bits_per_key = static_cast<int>(message.bloom_bits_per_key());
  job->lineage = message.lineage();
  job->family = message.family();
  job->merge_operator = message.merge_operator();
  job->merged_bytes_max = message.merged_bytes_max();
  job->compaction_filter = message.compaction_filter();
  job->filter_context = {.is_full_compaction = message.is_full_compaction(),
                         .is_manual_compaction = message.is_manual_compaction(),
                         .column_family_id = message.family()};
  for (const control::ReservedTable& output : message.outputs()) {
    ReservedTable& decoded = job->outputs.emplace_back();
    decoded.id = output.id();
    NACRE_RETURN_IF_ERROR(DecodePlacement(output.placement(), &decoded.placement));
  }
  return Status::OK();
}

void EncodeResult(const CompactionResult& result, control::CompactionOutcome* message) {
  for (const TableMeta& table : result.tables) EncodeTableMeta(table, message->add_tables());
  message->set_entries_read(result.stats.entries_read);
  message->set_entries_written(result.stats.entries_written);
  message->set_entries_shadowed(result.stats.entries_shadowed);
  message->set_tombstones_dropped(result.stats.tombstones_dropped);
  message->set_bytes_read(result.stats.bytes_read);
  message->set_bytes_written(result.stats.bytes_written);
  message->set_cpu_nanos(result.cpu_nanos);
  for (const DamagedTable& table : result.damaged) {
    control::DamagedTable* const damaged = message->add_damaged();
    damaged->set_table_id(table.id);
    damaged->set_fragments(table.fragments);
  }
}

Status DecodeResult(const control::CompactionOutcome& message, CompactionResult* result) {
  for (const std::string& table : message.tables()) {
    NACRE_RETURN_IF_ERROR(
        DecodeTable(table, &result->tables.emplace_back()).WithContext("compaction result"));
  }
  result->stats.entries_read = message.entries_read();
  result->stats.entries_written = message.entries_written();
  result->stats.entries_shadowed = message.entries_shadowed();
  result->stats.tombstones_dropped = message.tombstones_dropped();
  result->stats.bytes_read = message.bytes_read();
  result->stats.bytes_written = message.bytes_written();
  result->cpu_nanos = message.cpu_nanos();
  for (const control::DamagedTable& table : message.damaged()) {
    result->damaged.push_back({table.table_id(), table.fragments()});
  }
  return Status::OK();
}

}  // namespace nacre::pool
