#pragma once

#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre::rocksdb_api {

// Between the types of both interfaces.

inline nacre::Slice ToNacre(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }
inline rocksdb::Slice ToRocksdb(const nacre::Slice& slice) { return {slice.data(), slice.size()}; }

/// The same code, where RocksDB has it; `IOError` where it has not.
rocksdb::Status ToRocksdb(const nacre::Status& status);

/// `InvalidArgument` for what RocksDB refuses. `ignore_missing_column_families` is for the caller.
rocksdb::Status ToNacre(const rocksdb::WriteOptions& options, nacre::WriteOptions* result);

/// What a read is: some options are of one kind only, and mean nothing to the other one.
enum class ReadKind : uint8_t {
  kPoint,     ///< Get and MultiGet; `read_tier` and `value_size_soft_limit` are for the caller.
  kIterator,  ///< `tailing` is for the caller.
};
/// Converts all but the snapshot and the bounds, which are objects, and the deadline.
/// `NotSupported` names an option that would change what is read or how long it may take.
rocksdb::Status ToNacre(const rocksdb::ReadOptions& options, ReadKind kind,
                        nacre::ReadOptions* result);

/// Whether a read's deadline has passed, by the clock of `env`; 0 is none.
inline bool IsPast(std::chrono::microseconds deadline, rocksdb::Env* env) {
  return deadline.count() != 0 && env->NowMicros() > static_cast<uint64_t>(deadline.count());
}

/// `*result` has what RocksDB has no word for. `NotSupported` names what is missing.
rocksdb::Status ToNacre(const rocksdb::DBOptions& options, nacre::DBOptions* result);
/// The same of a family. `logger` (may be null) is for what the options call. What is null in them
/// (merge operator, compaction filter) stays as it is in `*result`.
rocksdb::Status ToNacre(const rocksdb::ColumnFamilyOptions& options,
                        const std::shared_ptr<rocksdb::Logger>& logger,
                        nacre::ColumnFamilyOptions* result);

/// Checks changes for SetDBOptions: `NotFound` names an option that a RocksDB cannot change while
/// it is open or does not know, `NotSupported` one that only Nacre cannot change.
rocksdb::Status CheckChangeable(const std::unordered_map<std::string, std::string>& changes);

/// What Nacre has moved into its bounds, or `SetOptions` and `SetDBOptions` have changed.
void CopyInForce(const nacre::ColumnFamilyOptions& ours, rocksdb::ColumnFamilyOptions* result);
void CopyInForce(const nacre::DBOptions& ours, rocksdb::DBOptions* result);

}  // namespace nacre::rocksdb_api
