#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nacre/compaction_filter.h"
#include "nacre/merge_operator.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/extent.h"
#include "table/format/internal_key.h"
#include "table/format/table_meta.h"
#include "table/iterator/internal_iterator.h"
#include "table/ranges/range_tombstones.h"
#include "table/table_builder.h"

namespace nacre {

/// A closed range of user keys.
struct KeyRange {
  std::string smallest;
  std::string largest;
};

struct MergeOptions {
  const Comparator* comparator = nullptr;
  /// Ascending; the versions that these see are kept.
  std::vector<SequenceNumber> snapshots;
  /// Key ranges, disjoint and ascending, in which levels below the output may hold older versions.
  /// Outside of them a tombstone that no snapshot needs is dropped, and a visible-to-all value's
  /// sequence is written as 0.
  std::vector<KeyRange> deeper;
  /// Merges operands where no snapshot loses anything by it; null leaves them as they are. It also
  /// leaves those that fail to merge, so that readers see the failure, and those that would become
  /// a record of more than `merged_bytes_max` bytes: a table has room for its largest input.
  const MergeOperator* merge_operator = nullptr;
  uint64_t merged_bytes_max = 0;
  /// Asked for the newest version of each key in the input, if it is a value that no snapshot sees;
  /// null: nothing is filtered. It is told `level`.
  const CompactionFilter* compaction_filter = nullptr;
  int level = 0;
  /// The input's range tombstones, or null. Entries that they cover are dropped where no snapshot
  /// sees them, and they themselves are dropped where every snapshot sees them and nothing older is
  /// left.
  std::shared_ptr<const RangeTombstones> range_tombstones;
  /// User keys in [begin, end); nothing: open.
  std::optional<std::string> begin;
  std::optional<std::string> end;
  /// A table is cut once its size reaches this, never between two versions of one user key.
  uint64_t target_table_bytes = 64 << 20;
  TableBuilderOptions table;  ///< Its comparator is `comparator`, whatever it says.
  /// Checked every few hundred entries; set: the merge ends with `Aborted`. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

struct MergeStats {
  uint64_t entries_read = 0;
  uint64_t entries_written = 0;
  uint64_t entries_shadowed = 0;  ///< Dropped: a newer version in the same snapshot stripe.
  uint64_t tombstones_dropped = 0;
  uint64_t bytes_read = 0;     ///< Keys and values.
  uint64_t bytes_written = 0;  ///< Table bytes.
};

/// Gives the kernel a place for the next output table: identity (id, placement, ...) and writer.
/// `NoSpace` ends the merge. A user key whose versions do not fit one table (Fits) is continued
/// in the next one.
using NewOutput = std::function<Status(TableMeta* identity, std::unique_ptr<ExtentWriter>* writer)>;

/// Merges `input` into sorted tables: the one merge-and-drop kernel of the tree, run by flush and
/// by compaction on the memory nodes and on the compute node. On failure, `outputs` holds the
/// tables finished so far, which the caller discards. `Aborted` if a comparator, merge operator or
/// filter throws, or memory is short.
Status MergeTables(InternalIterator* input, const MergeOptions& options,
                   const NewOutput& new_output, std::vector<TableMeta>* outputs, MergeStats* stats);

}  // namespace nacre
