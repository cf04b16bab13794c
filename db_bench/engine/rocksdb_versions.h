#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/version.h>

#include <cstddef>
#include <memory>
#include <string>

// What Debian's RocksDB 7 and the newest one want done differently.

namespace nacre::bench {

inline rocksdb::Status OpenRocksdb(const rocksdb::Options& options, const std::string& path,
                                   std::unique_ptr<rocksdb::DB>* db) {
#if ROCKSDB_MAJOR >= 10
  return rocksdb::DB::Open(options, path, db);
#else
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, path, &opened);
  db->reset(opened);
  return status;
#endif
}

/// The kind of block cache that RocksDB's own db_bench takes by default.
inline std::shared_ptr<rocksdb::Cache> NewRocksdbCache(size_t bytes) {
#if ROCKSDB_MAJOR >= 10
  // This kind cannot be empty.
  if (bytes > 0) {
    return rocksdb::HyperClockCacheOptions(bytes, /*estimated_entry_charge=*/0).MakeSharedCache();
  }
#endif
  return rocksdb::NewLRUCache(bytes);
}

/// Whether the library that runs has assertions compiled in: only then it has the points that its
/// tests hook into.
bool RocksdbHasAssertions();

}  // namespace nacre::bench
