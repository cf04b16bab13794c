#pragma once

#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>

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
rocksdb::Status ToNacre(const rocksdb::Options& options, nacre::Options* result);

}  // namespace nacre::rocksdb_api
