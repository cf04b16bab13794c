#pragma once

#include <string>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/comparator.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

class DBImpl;

// What transactions and indexed batches ask of the database below them, by family: null is the
// default one.

/// 0 for null.
uint32_t IdOf(const ColumnFamilyHandle* family);
/// The order of the family's keys; null if the handle does not say.
const Comparator* ComparatorOf(ColumnFamilyHandle* family);

/// `*value` gets what the operands (oldest first) make of `existing` (null: nothing), by the merge
/// operator of the family or, if that is null, of the default one of `db`.
Status MergeBelow(DB* db, ColumnFamilyHandle* family, const Slice& key, const Slice* existing,
                  const std::vector<Slice>& operands, std::string* value);

/// The engine below wrappers; null if it is another (one that was opened for reading).
DBImpl* EngineOf(DB* db);

}  // namespace nacre
