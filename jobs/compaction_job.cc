#include "jobs/compaction_job.h"

#include <fmt/format.h>

#include <utility>

#include "pool/store/table_store.h"
#include "table/concatenating_iterator.h"
#include "table/iterator/merging_iterator.h"
#include "table/seal/sealed_extent.h"
#include "table/seal/table_keys.h"
#include "table/table_reader.h"
#include "util/clock.h"
#include "util/exceptions.h"

namespace nacre::pool {
namespace {

Status OpenInputs(const CompactionJob& job, const Comparator* comparator, TableStore* store,
                  std::vector<std::vector<std::unique_ptr<TableReader>>>* runs) {
  for (const auto& run : job.runs) {
    auto& readers = runs->emplace_back();
    for (const auto& table : run) {
      auto stored = store->OpenExtent(table->id, table->placement, table->size);
      NACRE_RETURN_IF_ERROR(TableReader::Open(
          table, comparator, PlainExtent(*table, std::move(stored)), &readers.emplace_back()));
    }
  }
  return Status::OK();
}

/// The tombstones of all inputs together, as far as they are merged; null if there are none.
std::shared_ptr<const RangeTombstones> RangeTombstonesOf(
    const std::vector<std::vector<std::unique_ptr<TableReader>>>& runs, const CompactionJob& job,
    const JobPlugins& plugins) {
  std::vector<const RangeTombstones*> parts;
  for (const auto& run : runs) {
    for (const auto& reader : run) {
      if (reader->range_tombstones() != nullptr) parts.push_back(reader->range_tombstones());
    }
  }
  if (parts.empty()) return nullptr;
  RangeTombstones all = RangeTombstones::Merge(plugins.comparator, parts);
  if (!job.window.everything()) all = TombstonesIn(plugins.comparator, all, job.window);
  if (all.empty()) return nullptr;
  return std::make_shared<const RangeTombstones>(std::move(all));
}

}  // namespace

Status NewTable(TableStore* store, const TableKeys* table_keys, TableMeta* identity,
                uint64_t chunk_bytes, const WriteKeys* write_keys,
                std::unique_ptr<ExtentWriter>* writer) {
  if (table_keys != nullptr) NACRE_RETURN_IF_ERROR(table_keys->SealNew(identity));
  std::unique_ptr<ExtentWriter> stored;
  NACRE_RETURN_IF_ERROR(
      store->NewWriter(identity->id, identity->placement, chunk_bytes, &stored, write_keys));
  *writer = PlainWriter(*identity, std::move(stored));
  return Status::OK();
}

Status RunMerge(const CompactionJob& job, InternalIterator* input,
                std::shared_ptr<const RangeTombstones> range_tombstones, const JobPlugins& plugins,
                TableStore* store, const std::atomic<bool>* cancelled, CompactionResult* result) {
  MergeOptions options;
  options.comparator = plugins.comparator;
  options.merge_operator = plugins.merge_operator.get();
  options.merged_bytes_max = job.merged_bytes_max;
  options.compaction_filter = plugins.compaction_filter.get();
  options.level = static_cast<int>(job.output_level);
  options.range_tombstones = std::move(range_tombstones);
  options.snapshots = job.snapshots;
  options.deeper = job.deeper;
  options.begin = job.begin;
  options.end = job.end;
  options.target_table_bytes = job.target_table_bytes;
  options.table.comparator = plugins.comparator;
  options.table.bloom_bits_per_key = job.bloom_bits_per_key;
  options.table.lineage = job.lineage;
  options.cancelled = cancelled;

  size_t used = 0;
  const auto new_output = [&](TableMeta* identity, std::unique_ptr<ExtentWriter>* writer) {
    if (used == job.outputs.size()) {
      return Status::NoSpace(
          fmt::format("a merge needs more than the {} tables reserved for it", used));
    }
    const ReservedTable& output = job.outputs[used++];
    identity->id = output.id;
    identity->database_id = job.database_id;
    identity->family = job.family;
    identity->level = job.output_level;
    identity->manifest_version = job.manifest_version;
    identity->placement = output.placement;
    identity->comparator = plugins.comparator->Name();
    return NewTable(store, job.table_keys, identity, job.chunk_size, job.write_keys, writer);
  };
  return MergeTables(input, options, new_output, &result->tables, &result->stats);
}

Status RunCompaction(const CompactionJob& job, const JobPlugins& plugins, TableStore* store,
                     const std::atomic<bool>* cancelled, CompactionResult* result) try {
  const uint64_t cpu_start = ThreadCpuNanos();
  std::vector<std::vector<std::unique_ptr<TableReader>>> readers;
  NACRE_RETURN_IF_ERROR(OpenInputs(job, plugins.comparator, store, &readers));

  // Everything will be read once, in order: fetch far ahead from the start.
  TableIteratorOptions read_options;
  read_options.readahead_initial = 256 << 10;
  read_options.readahead_max = 1 << 20;
  read_options.reads_in_flight = 2;
  const InternalKeyComparator internal_comparator(plugins.comparator);
  std::vector<std::unique_ptr<InternalIterator>> children;
  children.reserve(readers.size());
  for (const auto& run : readers) {
    std::vector<const TableReader*> tables;
    tables.reserve(run.size());
    for (const auto& reader : run) tables.push_back(reader.get());
    children.push_back(
        NewConcatenatingIterator(internal_comparator, std::move(tables), read_options));
  }
  std::unique_ptr<InternalIterator> input =
      NewMergingIterator(internal_comparator, std::move(children));
  if (!job.window.everything()) input = NewWindowIterator(std::move(input), job.window);

  NACRE_RETURN_IF_ERROR(RunMerge(job, input.get(), RangeTombstonesOf(readers, job, plugins),
                                 plugins, store, cancelled, result));
  for (const auto& run : readers) {
    for (const auto& reader : run) {
      const FragmentSet damaged = reader->extent()->damaged();
      if (damaged != 0) result->damaged.push_back({reader->meta().id, damaged});
    }
  }
  result->cpu_nanos = ThreadCpuNanos() - cpu_start;
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

}  // namespace nacre::pool
