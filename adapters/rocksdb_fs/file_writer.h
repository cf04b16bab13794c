#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "adapters/rocksdb_fs/remote_file.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/store/extent_writes.h"

namespace nacre::rocksfs {

/// Appends to one file. Bytes are gathered in registered buffers, each of which is posted when it
/// is full or flushed; several are in flight at a time, to all copies.
///
/// Failures: those of ExtentWrites, and of room for the file. The first one ends the writer;
/// nothing is under way any more then. The file keeps what was published.
///
/// Thread safety: none.
class FileWriter {
 public:
  /// Waits for nothing when it is destroyed: what is under way is given up.
  explicit FileWriter(std::shared_ptr<RemoteFile> file);

  Status Append(const Slice& bytes);
  /// Posts what was gathered, and waits for nothing. What every copy has by now is published.
  Status Post();
  /// Returns when every copy has all that was appended; it is published then.
  Status Sync();
  /// The same; the file is complete, and takes no more.
  Status Close();

  uint64_t size() const { return size_; }

 private:
  /// Small enough to stay in the processor's cache from the copy into it to that of the transport.
  static constexpr size_t kBufferBytes = 256 << 10;
  static constexpr size_t kBuffers = 8;

  struct Gathered {
    pool::Buffer* buffer = nullptr;  ///< Null: there is none yet.
    uint64_t begin = 0;              ///< Where it begins in the file.
    size_t filled = 0;
    size_t posted = 0;
  };

  Status CheckOpen() const {
    return closed_ ? Status::InvalidArgument("the file is closed") : writes_.failure();
  }
  Gathered& current() { return buffers_[current_]; }
  /// Makes a buffer with nothing under way the current one; waits for it if need be.
  Status NextBuffer();
  Status PostGathered();

  const std::shared_ptr<RemoteFile> file_;
  bool closed_ = false;
  uint64_t size_ = 0;  ///< Appended.
  uint64_t published_ = 0;
  FileExtent extent_;  ///< The last one of the file.
  size_t current_ = 0;
  std::array<Gathered, kBuffers> buffers_;
  pool::ExtentWrites writes_;  ///< Each buffer is a flight.
};

}  // namespace nacre::rocksfs
