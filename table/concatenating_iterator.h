#pragma once

#include <memory>
#include <vector>

#include "table/internal_iterator.h"
#include "table/internal_key.h"
#include "table/table_reader.h"

namespace nacre {

/// The entries of `tables`, one table after the other: they are disjoint and ascending (one level,
/// one run of a compaction). Opens the iterator of one table at a time. The tables outlive the
/// result.
std::unique_ptr<InternalIterator> NewConcatenatingIterator(const InternalKeyComparator& comparator,
                                                           std::vector<const TableReader*> tables,
                                                           const TableIteratorOptions& options);

}  // namespace nacre
