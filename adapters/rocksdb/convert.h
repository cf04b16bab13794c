#pragma once

#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <memory>

#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre::rocksdb_api {

// Between the types of both interfaces.

inline nacre::Slice ToNacre(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }
inline rocksdb::Slice ToRocksdb(const nacre::Slice& slice) { return {slice.data(), slice.size()}; }

/// The same code, where RocksDB has it; `IOError` where it has not.
rocksdb::Status ToRocksdb(const nacre::Status& status);

inline nacre::WriteOptions ToNacre(const rocksdb::WriteOptions& options) {
  nacre::WriteOptions result;
  result.sync = options.sync;
  result.disable_wal = options.disableWAL;
  result.no_slowdown = options.no_slowdown;
  return result;
}

/// But for the snapshot and the bounds, which are objects. `NotSupported` for options that would
/// change what is read.
rocksdb::Status ToNacre(const rocksdb::ReadOptions& options, nacre::ReadOptions* result);

/// `*result` has what RocksDB has no word for. `NotSupported` names what is missing.
rocksdb::Status ToNacre(const rocksdb::DBOptions& options, nacre::DBOptions* result);
/// The same of a family. `logger` (may be null) is for what the options call. What is null in them
/// (merge operator, compaction filter) stays as it is in `*result`.
rocksdb::Status ToNacre(const rocksdb::ColumnFamilyOptions& options,
                        const std::shared_ptr<rocksdb::Logger>& logger,
                        nacre::ColumnFamilyOptions* result);

/// What `SetOptions` and `SetDBOptions` can change.
void CopyMutable(const nacre::ColumnFamilyOptions& ours, rocksdb::ColumnFamilyOptions* result);
void CopyMutable(const nacre::DBOptions& ours, rocksdb::DBOptions* result);

}  // namespace nacre::rocksdb_api
