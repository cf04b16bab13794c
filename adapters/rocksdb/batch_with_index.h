#pragma once

#include <rocksdb/db.h>
#include <rocksdb/iterator.h>
#include <rocksdb/options.h>
#include <rocksdb/utilities/write_batch_with_index.h>

#include <cstddef>
#include <string>

namespace nacre::rocksdb_api {

// Reads through a rocksdb::WriteBatchWithIndex on top of a Nacre database. RocksDB's methods of
// these names take the database for one of RocksDB's own as soon as there is something to be
// merged, and MultiGetFromBatchAndDB always; programs that are linked with a librocksdb.so get
// these in their place (rocksdb_calls.cc). `family` is one of Nacre's, and not null.

/// What the batch alone says. `MergeInProgress`: operands of a value that is not in the batch.
rocksdb::Status GetFromBatch(rocksdb::WriteBatchWithIndex* batch,
                             rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& key,
                             std::string* value);

/// As `DB::Get` were the batch written.
rocksdb::Status GetFromBatchAndDB(rocksdb::WriteBatchWithIndex* batch, rocksdb::DB* db,
                                  const rocksdb::ReadOptions& options,
                                  rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& key,
                                  rocksdb::PinnableSlice* value);

/// As `DB::MultiGet` were the batch written.
void MultiGetFromBatchAndDB(rocksdb::WriteBatchWithIndex* batch, rocksdb::DB* db,
                            const rocksdb::ReadOptions& options,
                            rocksdb::ColumnFamilyHandle* family, size_t count,
                            const rocksdb::Slice* keys, rocksdb::PinnableSlice* values,
                            rocksdb::Status* statuses);

/// Iterates over `base`, which it takes, with the updates of the batch on top; within the bounds of
/// `options`, which may be null. The batch must outlive it, and may grow meanwhile: the current
/// entry stays as it is until the iterator moves.
rocksdb::Iterator* NewIteratorWithBase(rocksdb::WriteBatchWithIndex* batch,
                                       rocksdb::ColumnFamilyHandle* family, rocksdb::Iterator* base,
                                       const rocksdb::ReadOptions* options);

}  // namespace nacre::rocksdb_api
