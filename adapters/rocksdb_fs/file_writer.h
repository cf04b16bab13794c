#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "adapters/rocksdb_fs/remote_file.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "pool/read/buffer_pool.h"
#include "rdma/transport.h"

namespace nacre::rocksfs {

/// Appends to one file. Bytes are gathered in registered buffers, each of which is posted when it
/// is full or flushed; several are in flight at a time, to all copies.
///
/// Failures: the first one ends the writer; nothing is under way any more then. The file keeps what
/// was published.
///
/// Thread safety: none.
class FileWriter {
 public:
  explicit FileWriter(std::shared_ptr<RemoteFile> file) : file_(std::move(file)) {}
  /// Waits for nothing: what is under way is given up.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

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
    pool::Buffer buffer;
    uint64_t begin = 0;  ///< Where it begins in the file.
    size_t filled = 0;
    size_t posted = 0;
    int outstanding = 0;  ///< Requests.
  };

  Gathered& current() { return buffers_[current_]; }
  /// Makes a buffer with nothing under way the current one; waits for it if need be.
  Status NextBuffer();
  Status PostGathered();
  /// One part of a buffer, within an extent, to all copies.
  Status PostPart(const FileExtent& extent, uint64_t offset, rdma::LocalBuffer from);
  Status PostCopy(const ExtentAddr& copy, uint64_t offset, rdma::LocalBuffer from);
  void TakeCompletions();
  /// Waits until `*count` is below `limit`.
  Status AwaitBelow(const int* count, int limit);
  /// Nothing will be written once this returns. Answers the first failure.
  Status Fail(Status why);

  const std::shared_ptr<RemoteFile> file_;
  Status failure_;
  uint64_t size_ = 0;  ///< Appended.
  uint64_t published_ = 0;
  FileExtent extent_;  ///< The last one of the file.
  size_t current_ = 0;
  int outstanding_ = 0;  ///< Requests of all buffers.
  std::array<Gathered, kBuffers> buffers_;
  std::unique_ptr<pool::Lane> lane_;  ///< Null at first, and after a failure. Ends first.
};

}  // namespace nacre::rocksfs
