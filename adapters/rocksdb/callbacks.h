#pragma once

#include <rocksdb/compaction_filter.h>
#include <rocksdb/env.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/options.h>
#include <rocksdb/slice_transform.h>

#include <memory>

#include "nacre/compaction_filter.h"
#include "nacre/logger.h"
#include "nacre/merge_operator.h"
#include "nacre/slice_transform.h"

namespace nacre::rocksdb_api {

// Code of an application that RocksDB's options carry, for a Nacre database to call. Each has the
// name "rocksdb." with its own behind it: what memory nodes know by its own name may do something
// else, so this process does the compactions, unless a plug-in of the nodes has that name.

/// `logger` may be null; it is handed to the operator.
std::shared_ptr<nacre::MergeOperator> AdaptMergeOperator(
    std::shared_ptr<rocksdb::MergeOperator> theirs, std::shared_ptr<rocksdb::Logger> logger);

/// Adapts the filter or the factory in `options`; if both are there, the filter counts. Null if
/// there is neither. A filter must outlive the database, as in RocksDB.
std::shared_ptr<nacre::CompactionFilterFactory> AdaptCompactionFilter(
    const rocksdb::ColumnFamilyOptions& options);

/// Adapts RocksDB's LOG, which takes what is logged at its level and above.
std::shared_ptr<nacre::Logger> AdaptLogger(std::shared_ptr<rocksdb::Logger> theirs);

std::shared_ptr<const nacre::SliceTransform> AdaptPrefixExtractor(
    std::shared_ptr<const rocksdb::SliceTransform> theirs);

}  // namespace nacre::rocksdb_api
