#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nacre/compaction_filter.h"
#include "nacre/merge_operator.h"
#include "nacre/status.h"
#include "table/format/table_meta.h"
#include "table/iterator/internal_iterator.h"
#include "table/iterator/sequence_window.h"
#include "table/merge/merge_kernel.h"
#include "util/codes/reed_solomon.h"

namespace nacre {
class TableKeys;
}

namespace nacre::pool {

class TableStore;
class WriteKeys;

/// Space reserved for one output table.
struct ReservedTable {
  uint64_t id = 0;
  Placement placement;  ///< Extents of the reserved size.
};

/// Fragments of an input in which damage was found, and read around.
struct DamagedTable {
  uint64_t id = 0;
  FragmentSet fragments = 0;
};

struct CompactionResult {
  std::vector<TableMeta> tables;  ///< Each uses outputs[i] of the job; placements as reserved.
  MergeStats stats;
  uint64_t cpu_nanos = 0;
  std::vector<DamagedTable> damaged;
};

/// One key range of one compaction: all that an executor, on a memory node or on the compute
/// node, needs. The owner reserves the space of the outputs beforehand, so that every extent has
/// one owner and an aborted job leaves nothing to be found on the nodes.
struct CompactionJob {
  using Result = CompactionResult;

  uint64_t database_id = 0;
  uint32_t family = 0;  ///< Family of the outputs; for a flush, of the updates to take.
  std::string comparator_name;
  /// Id of the merge operator, if there are operands in the input; else empty.
  std::string merge_operator;
  /// See MergeOptions.
  uint64_t merged_bytes_max = 0;
  /// Name of the filter, or of its factory; empty: there is none.
  std::string compaction_filter;
  CompactionFilter::Context filter_context;
  /// Sorted runs, newest first; the tables of one run are disjoint and ascending.
  std::vector<std::vector<std::shared_ptr<const TableMeta>>> runs;
  /// Those entries of the runs that are merged. Nodes know none but all.
  SequenceWindow window{};
  std::vector<SequenceNumber> snapshots;
  std::vector<KeyRange> deeper;
  std::optional<std::string> begin;
  std::optional<std::string> end;
  uint64_t target_table_bytes = 0;
  uint64_t chunk_size = 0;
  int bloom_bits_per_key = kBloomBitsPerKey;  ///< Bits of the outputs' filters; 0: none.
  uint32_t output_level = 0;
  uint64_t manifest_version = 0;
  std::string lineage;                 ///< For the outputs; as in TableBuilderOptions.
  std::vector<ReservedTable> outputs;  ///< Used in order; running out of them is `NoSpace`.
  /// What the outputs are written with on other nodes. Null: the keys of the database's owner.
  const WriteKeys* write_keys = nullptr;
  /// What tables are encrypted with. Nodes have none, so such jobs stay with the owner.
  const TableKeys* table_keys = nullptr;
};

/// The plug-ins that a job names, as the process that runs it has them.
struct JobPlugins {
  const Comparator* comparator = nullptr;
  std::shared_ptr<const MergeOperator> merge_operator;  ///< Null: operands stay as they are.
  /// The filter of this job; null: nothing is filtered.
  std::shared_ptr<const CompactionFilter> compaction_filter;
};

/// A writer for the plain bytes of the table that `identity` names, which is encrypted from here on
/// if there are `table_keys`. `chunk_bytes`: of its chunks as stored. `write_keys`: see
/// TableStore::NewWriter.
Status NewTable(TableStore* store, const TableKeys* table_keys, TableMeta* identity,
                uint64_t chunk_bytes, const WriteKeys* write_keys,
                std::unique_ptr<ExtentWriter>* writer);

/// What is the same of all jobs that make tables: runs `input` through the merge kernel into the
/// job's outputs. Its runs are not looked at. `range_tombstones`: of the input; may be null.
Status RunMerge(const CompactionJob& job, InternalIterator* input,
                std::shared_ptr<const RangeTombstones> range_tombstones, const JobPlugins& plugins,
                TableStore* store, const std::atomic<bool>* cancelled, CompactionResult* result);

/// Runs `job` through the merge kernel over tables of `store`: the same code at either site.
Status RunCompaction(const CompactionJob& job, const JobPlugins& plugins, TableStore* store,
                     const std::atomic<bool>* cancelled, CompactionResult* result);

}  // namespace nacre::pool
