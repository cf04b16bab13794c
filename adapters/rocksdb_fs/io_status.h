#pragma once

#include <rocksdb/io_status.h>

#include <string>

#include "nacre/status.h"

namespace nacre::rocksfs {

/// What RocksDB is told of a failure. Those that go by when nodes come back, or others take over,
/// are retryable: RocksDB then does what failed once more, in other files.
inline rocksdb::IOStatus ToIOStatus(const Status& status, const std::string& context) {
  if (status.ok()) [[likely]]
    return rocksdb::IOStatus::OK();
  const std::string text = status.ToString();
  if (status.IsNotFound()) return rocksdb::IOStatus::NotFound(context, text);
  if (status.IsNotSupported()) return rocksdb::IOStatus::NotSupported(context, text);
  if (status.IsInvalidArgument()) return rocksdb::IOStatus::InvalidArgument(context, text);
  if (status.IsCorruption()) return rocksdb::IOStatus::Corruption(context, text);
  if (status.IsNoSpace()) return rocksdb::IOStatus::NoSpace(context, text);
  if (status.IsFenced()) return rocksdb::IOStatus::IOFenced(context, text);
  rocksdb::IOStatus failure = rocksdb::IOStatus::IOError(context, text);
  failure.SetRetryable(status.IsUnavailable() || status.IsTimedOut() || status.IsBusy());
  return failure;
}

}  // namespace nacre::rocksfs
