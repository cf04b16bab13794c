#pragma once

#include <memory>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/comparator.h"
#include "nacre/db.h"
#include "nacre/iterator.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/internal_key.h"

namespace nacre {

class DBImpl;

// What transactions and indexed batches ask of the database below them, by family: null is the
// default one.

/// 0 for null.
uint32_t IdOf(const ColumnFamilyHandle* family);
/// The order of the family's keys; null if the handle does not say.
const Comparator* ComparatorOf(ColumnFamilyHandle* family);

Status GetBelow(DB* db, const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                PinnableSlice* value);
void MultiGetBelow(DB* db, const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                   const Slice* keys, PinnableSlice* values, Status* statuses);
std::unique_ptr<Iterator> IteratorBelow(DB* db, const ReadOptions& options,
                                        ColumnFamilyHandle* family);

/// `*value` gets what the operands (oldest first) make of `existing` (null: nothing), by the merge
/// operator of `options` or of the family. `InvalidArgument` if there is none, `Corruption` if it
/// refuses.
Status MergeWith(const Options& options, const Slice& key, const Slice* existing,
                 const std::vector<Slice>& operands, std::string* value);
Status MergeBelow(DB* db, ColumnFamilyHandle* family, const Slice& key, const Slice* existing,
                  const std::vector<Slice>& operands, std::string* value);

/// The engine below wrappers; null if it is another (one that was opened for reading).
DBImpl* EngineOf(DB* db);

}  // namespace nacre
