#pragma once

#include <filesystem>
#include <memory>

#include "nacre/status.h"

namespace nacre::bench {

/// A new folder in memory, gone with this object: where RocksDB and LevelDB keep their tables, so
/// that they are compared with remote memory and not with a disk.
class ScratchFolder {
 public:
  /// Makes a folder in /dev/shm. `IOError` if that fails.
  static Status Make(std::unique_ptr<ScratchFolder>* folder);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace nacre::bench
