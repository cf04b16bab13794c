#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "adapters/rocksdb_fs/file_space.h"
#include "nacre/status.h"
#include "table/format/placement.h"
#include "util/mutex.h"

namespace nacre::rocksfs {

/// The places of a file's bytes. Extents are in order and without gaps.
struct FileMap {
  std::vector<FileExtent> extents;
  uint64_t size = 0;  ///< Bytes that every copy has.

  /// The extent that has the byte at `offset`, which one has.
  const FileExtent& Find(uint64_t offset) const;
};

/// One file, whatever its name is, if it still has one: its memory is freed with this object. Made
/// by one writer, which appends; then it never changes.
///
/// Thread safety: all methods may be called from many threads at once.
class RemoteFile {
 public:
  explicit RemoteFile(std::shared_ptr<FileSpace> space) : space_(std::move(space)) {}
  ~RemoteFile();
  RemoteFile(const RemoteFile&) = delete;
  RemoteFile& operator=(const RemoteFile&) = delete;

  FileSpace* space() const { return space_.get(); }
  uint64_t size() const EXCLUDES(mutex_);
  /// Nanoseconds of the wall clock.
  uint64_t modified_nanos() const { return modified_nanos_.load(std::memory_order_relaxed); }

  // ---- For the writer -----------------------------------------------------------------------

  /// Makes the file `bytes` longer, or as much as is better.
  Status Extend(uint64_t bytes, FileExtent* extent) EXCLUDES(mutex_);
  /// Gives readers the first `bytes` bytes from now on.
  void Publish(uint64_t bytes) EXCLUDES(mutex_);
  /// The file is complete with `bytes` bytes; room beyond is given back.
  void Finish(uint64_t bytes) EXCLUDES(mutex_);

  // ---- For readers --------------------------------------------------------------------------

  /// The map of what is published. A complete file's own map is returned; else a copy is made in
  /// `*copy`, which the caller passes empty.
  const FileMap& Map(FileMap* copy) const EXCLUDES(mutex_);
  /// Null as long as the file is not complete. Acquire: pairs with Finish.
  const FileMap* complete_map() const { return complete_.load(std::memory_order_acquire); }

 private:
  const std::shared_ptr<FileSpace> space_;
  std::atomic<uint64_t> modified_nanos_{0};
  /// The map below, which is constant from then on. Release: pairs with complete_map().
  std::atomic<const FileMap*> complete_{nullptr};
  mutable Mutex mutex_;
  FileMap map_ GUARDED_BY(mutex_);
};

/// Reads the bytes [offset, offset + n) of `file`, from as many extents as have them, into `to`.
/// Where a copy cannot be read the next one is. `*read`: how many there are, fewer than `n` at the
/// end of the file only. Takes registered memory of the calling thread, and no lock for a complete
/// file.
Status ReadFile(const RemoteFile& file, uint64_t offset, size_t n, char* to, size_t* read);

/// One of several reads of a file.
struct FileRead {
  uint64_t offset = 0;
  size_t n = 0;
  char* to = nullptr;
  size_t read = 0;  ///< Out.
  Status status;    ///< Out.
};
/// As ReadFile for each, in flight together.
void ReadFile(const RemoteFile& file, FileRead* reads, size_t count);

}  // namespace nacre::rocksfs
