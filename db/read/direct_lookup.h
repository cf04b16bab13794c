#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "db/read/lookup_batch.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/index/point_index.h"
#include "table/table_reader.h"
#include "util/memory/loadable_memory.h"

namespace nacre {

/// The lookup of one key where nothing has to be read and nothing is unusual: each table that may
/// hold it has its point index here and its records in memory that this process has mapped. It
/// waits for nothing, so it needs none of what KeyLookup keeps between its steps, which cost a
/// quarter of such a lookup. Each step asks the processor for what the next one looks at.
///
///     if (lookup.Begin(context, key)) {
///       state = lookup.Find(context, value, status);
///       while (state == kLoads) state = lookup.Load(context, value, status);
///     }
///
/// Where it gives up (a node is lost, a record is damaged, a version is newer than the snapshot, an
/// operand has to be merged, ...) `*value`, which was empty, is empty again, and a KeyLookup begins
/// anew.
///
/// Thread safety: none. The view stays pinned meanwhile.
class DirectLookup {
 public:
  enum class State : uint8_t {
    kEnded,  ///< It has answered, in `*value` and `*status`.
    kLoads,  ///< Load is next.
    kGaveUp,
  };

  /// Whether there is any sense in it.
  static bool IsPossible(const LookupContext& context);

  /// `key` stays valid. False: it gives up.
  bool Begin(const LookupContext& context, const Slice& key);
  /// Looks in the MemTables and in the indexes of tables.
  State Find(const LookupContext& context, PinnableSlice* value, Status* status);
  State Load(const LookupContext& context, PinnableSlice* value, Status* status);

 private:
  struct Table {
    const TableHandle* handle;
    const PointIndex* index;
  };
  /// More than these are rare, only in a level 0 that lags behind.
  static constexpr size_t kTablesMax = 12;

  bool AddTable(const TableHandle& table);
  /// Goes on to the next candidate, here or in a later table.
  State NextCandidate(Status* status);

  Slice key_;
  uint64_t hash_ = 0;
  size_t table_ = 0;  ///< The candidates are of this one.
  size_t table_count_ = 0;
  int candidate_ = 0;
  int candidate_count_ = 0;
  const LoadableMemory* memory_ = nullptr;  ///< Has `bytes_`.
  Slice bytes_;                             ///< The record of the candidate begins them.
  Table tables_[kTablesMax];  ///< They may hold the key; from the newest to the oldest.
  RecordCandidate candidates_[kMaxCandidates];
};

/// Looks up all of `keys`, of which there are at most 64, that can be looked up so. Returns a bit
/// for each of the others.
uint64_t LookUpDirectly(const KeyContexts& contexts, std::span<const Slice> keys,
                        PinnableSlice* values, Status* statuses);

}  // namespace nacre
