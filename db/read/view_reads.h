#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/family/read_view.h"
#include "nacre/db.h"
#include "nacre/iterator.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"
#include "table/iterator/internal_iterator.h"
#include "table/ranges/range_cover.h"

namespace nacre {

// Reads of a view, for its owner and for followers. The caller keeps the view alive.

enum class MemTableAnswer : uint8_t {
  kAbsent,   ///< It is in the tables, if anywhere.
  kSettled,  ///< `*status` says how.
  kSearch,   ///< There are operands of merges: see SearchView.
};

/// Looks `key`, whose Hash64 is `hash`, up in the MemTables of `view`.
MemTableAnswer GetFromMemTables(const ReadView& view, const Slice& key, uint64_t hash,
                                SequenceNumber snapshot, PinnableSlice* value, Status* status);

/// Over MemTables and tables, at `snapshot`. `*cover` gets their range tombstones; entries that
/// these cover are to be passed over, and most of them are already.
std::unique_ptr<InternalIterator> NewViewIterator(const ReadView& view, const ReadOptions& options,
                                                  SequenceNumber snapshot, RangeCover* cover);

/// What `key` is in `view` up to `snapshot`, found version after version, from the newest source to
/// the oldest, until a value or a deletion: for a version older than the newest one in its table,
/// and for operands and what they apply to. Does I/O in those tables only that have the key, as far
/// as their indexes and filters tell. Under the guard that PointLookup wants.
Status SearchView(const ReadView& view, const ReadOptions& options, const Slice& key,
                  SequenceNumber snapshot, PinnableSlice* value);

/// What SearchView would merge, from the oldest: a value, operands. `NotFound` if there is nothing.
Status OperandsOf(const ReadView& view, const ReadOptions& options, const Slice& key,
                  SequenceNumber snapshot, std::vector<std::string>* operands);
/// As DB::GetMergeOperands has them: `InvalidArgument` if one is null.
Status CheckOperandsCall(const PinnableSlice* merge_operands,
                         const GetMergeOperandsOptions* options, const int* number);
/// Answers DB::GetMergeOperands.
Status GiveOperands(const std::vector<std::string>& operands,
                    const GetMergeOperandsOptions& options, PinnableSlice* merge_operands,
                    int* number);

/// What a user sees of `view` at `snapshot`; keeps the view.
std::unique_ptr<Iterator> NewUserIterator(std::shared_ptr<const ReadView> view,
                                          SequenceNumber snapshot, const ReadOptions& options);

/// The same without reads of tables: `Incomplete` where a table has entries in the direction of
/// travel, within the bounds of `options`.
std::unique_ptr<Iterator> NewMemoryIterator(std::shared_ptr<const ReadView> view,
                                            SequenceNumber snapshot, const ReadOptions& options);

/// See DB::GetApproximateSizes.
Status ApproximateSizes(const Version& version, const Range* ranges, int n, uint64_t* sizes);

}  // namespace nacre
