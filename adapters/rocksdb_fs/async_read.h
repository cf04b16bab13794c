#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/version.h>

#include <functional>
#include <memory>
#include <string>

#include "adapters/rocksdb_fs/remote_file.h"
#include "nacre/status.h"
#include "pool/read/remote_stream.h"

namespace nacre::rocksfs {

/// A read that RocksDB has asked for and not awaited yet. It lands in registered memory and is
/// copied to where RocksDB wants it when that is awaited.
///
/// Thread safety: none.
class AsyncRead {
 public:
  // As the version of RocksDB has it that this is compiled for.
#if ROCKSDB_MAJOR >= 10
  using Callback = std::function<void(rocksdb::FSReadRequest&, void*)>;
#else
  using Callback = std::function<void(const rocksdb::FSReadRequest&, void*)>;
#endif

  /// `file` and the bytes at `request.scratch` stay until this has ended or is destroyed. Failures
  /// show at the end.
  AsyncRead(std::shared_ptr<RemoteFile> file, const rocksdb::FSReadRequest& request,
            Callback callback, void* argument);

  /// Waits, and calls the callback. Idempotent.
  void Finish();
  /// Calls the callback with `Aborted`, unless it was called; nothing is written any more.
  void Abort();

 private:
  Status Start();
  Status Await(size_t* bytes);
  void End(rocksdb::IOStatus status, size_t bytes);

  const std::shared_ptr<RemoteFile> file_;
  const uint64_t offset_;
  const size_t length_;
  char* const scratch_;
  const Callback callback_;
  void* const argument_;
  size_t bytes_ = 0;  ///< How many there are.
  Status started_;
  pool::RemoteStream* stream_ = nullptr;
  std::shared_ptr<pool::StreamRead> read_;  ///< Null: nothing was started.
  bool ended_ = false;
};

}  // namespace nacre::rocksfs
