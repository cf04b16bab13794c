#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

// Files of an ordinary file system, which only checkpoints and logs of commands use. All failures
// are `IOError` with the path and what the system says, if nothing else is said.

/// An open file. Thread safety: reads from many threads at once; nothing else.
class PosixFile {
 public:
  /// Makes a file to be written from its beginning; earlier contents are gone.
  static Status Create(const std::string& path, std::unique_ptr<PosixFile>* file);
  /// Opens a file for reading. `NotFound` if there is none.
  static Status Open(const std::string& path, std::unique_ptr<PosixFile>* file);
  /// Opens a file for appending. `NotFound` if there is none.
  static Status OpenToAppend(const std::string& path, std::unique_ptr<PosixFile>* file);
  ~PosixFile();
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  const std::string& path() const { return path_; }
  /// Bytes, when it was opened or as written since.
  uint64_t size() const { return size_; }

  /// What is appended is on its way to the disk every few mebibytes, so that Sync has little left
  /// to wait for.
  Status Append(const Slice& bytes);
  /// Returns when all is on the disk.
  Status Sync();
  /// The same without times and other metadata that reading the bytes does not need.
  Status SyncData();
  /// Cuts off what is behind the first `bytes`, also for what is appended next.
  Status Truncate(uint64_t bytes);
  /// Exactly `n` bytes; `Corruption` if the file ends before.
  Status Read(uint64_t offset, size_t n, char* to) const;

 private:
  PosixFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  const std::string path_;
  const int descriptor_;
  uint64_t size_ = 0;
  uint64_t handed_over_ = 0;  ///< Bytes whose writing to the disk has been started.
};

/// A whole small file. `NotFound`; `Corruption` if it is longer than `most`.
Status ReadSmallFile(const std::string& path, uint64_t most, std::string* bytes);
/// Makes `bytes` the file's content as a whole, and durable; after a crash it is there or not.
/// Writes `path` + ".tmp" first.
Status WriteSmallFile(const std::string& path, const Slice& bytes);

/// Replaces `to`, if it is there. Durable with the folder.
Status RenameFile(const std::string& from, const std::string& to);
/// OK if there is none.
Status RemoveFile(const std::string& path);
/// Makes the names in the folder durable.
Status SyncFolder(const std::string& path);
/// Makes the folder and those above it.
Status MakeFolder(const std::string& path);
/// Names in the folder. `NotFound` if there is no such folder.
Status ListFolder(const std::string& path, std::vector<std::string>* names);
/// Seconds since 1970; 0 if that cannot be told.
uint64_t FileTime(const std::string& path);

/// A lock on a file, which excludes other objects in any process. It ends with this object or its
/// process.
class FileLock {
 public:
  enum class Kind : uint8_t { kShared, kExclusive };
  /// `Busy` if it is held in a way that conflicts with `kind`. The file is made if it is missing; a
  /// shared lock does without the file where it cannot be made.
  static Status Take(const std::string& path, Kind kind, std::unique_ptr<FileLock>* lock);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  const int descriptor_;  ///< -1: none.
};

}  // namespace nacre
