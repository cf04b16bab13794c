#pragma once

#include <memory>

#include "nacre/db.h"
#include "nacre/iterator.h"
#include "nacre/utilities/write_batch_with_index.h"
#include "transactions/batch_index.h"

namespace nacre {

/// See WriteBatchWithIndex::NewIterator. `index` outlives it.
std::unique_ptr<WBWIIterator> NewBatchIterator(const BatchIndex* index, uint32_t family);

/// See WriteBatchWithIndex::NewIteratorWithBase. `index` outlives it. `db` is asked for the merge
/// operator; without one, keys with operands show `NotSupported`.
std::unique_ptr<Iterator> NewBatchOverIterator(const BatchIndex* index, DB* db,
                                               ColumnFamilyHandle* family,
                                               std::unique_ptr<Iterator> base,
                                               const ReadOptions& options);

}  // namespace nacre
