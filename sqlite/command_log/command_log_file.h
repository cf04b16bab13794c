#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre::sqlite {

/// What a command log writes to: a file of a local file system, or what a test puts in its place.
/// Thread safety: none.
class CommandFile {
 public:
  virtual ~CommandFile() = default;
  /// Appends bytes. After a failure, some of them may be there.
  virtual Status Append(const Slice& bytes) = 0;
  /// Returns when all that was appended is on the disk.
  virtual Status Sync() = 0;
  /// Cuts off what is behind the first `bytes`.
  virtual Status Truncate(uint64_t bytes) = 0;
};

/// Opens a file that is there, to append to it.
using CommandFileOpener =
    std::function<Status(const std::string& path, std::unique_ptr<CommandFile>* file)>;

/// One of the file system.
Status OpenCommandFile(const std::string& path, std::unique_ptr<CommandFile>* file);

}  // namespace nacre::sqlite
