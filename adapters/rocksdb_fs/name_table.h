#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "adapters/rocksdb_fs/remote_file.h"
#include "util/mutex.h"

namespace nacre::rocksfs {

/// The names of a file system: folders and files by path, and which paths are locked. A path is
/// taken from the root, "a//b/" is "/a/b". A file that loses its name lives on while it is open.
///
/// Thread safety: all methods may be called from many threads at once.
class NameTable {
 public:
  enum class Kind : uint8_t { kNothing, kFile, kFolder };

  NameTable() : folders_{"/"} {}

  Kind Find(const std::string& path) const EXCLUDES(mutex_);
  /// Null if it is no file.
  std::shared_ptr<RemoteFile> File(const std::string& path) const EXCLUDES(mutex_);
  /// Replaces the file that has the name, if any. False if there is no such folder, or a folder has
  /// the name.
  bool PutFile(const std::string& path, std::shared_ptr<RemoteFile> file) EXCLUDES(mutex_);
  bool RemoveFile(const std::string& path) EXCLUDES(mutex_);
  /// A file, instead of one that has the name `to`. False if there is no such file, or `to` cannot
  /// be the name of one.
  bool Rename(const std::string& from, const std::string& to) EXCLUDES(mutex_);

  /// Makes a folder and those that it lies in. False if it exists, or a file has one of the names.
  bool MakeFolder(const std::string& path) EXCLUDES(mutex_);
  /// False if it is not there, or has something in it.
  bool RemoveFolder(const std::string& path) EXCLUDES(mutex_);
  /// Names in the folder, in order; none if there is no such folder.
  std::vector<std::string> Children(const std::string& path) const EXCLUDES(mutex_);

  /// Locks a path. False if it is locked. There need not be a file of that name.
  bool Lock(const std::string& path) EXCLUDES(mutex_);
  void Unlock(const std::string& path) EXCLUDES(mutex_);

  static std::string Normalize(const std::string& path);

 private:
  bool IsFreeInFolder(const std::string& normal) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<RemoteFile>> files_ GUARDED_BY(mutex_);
  std::set<std::string> folders_ GUARDED_BY(mutex_);
  std::set<std::string> locks_ GUARDED_BY(mutex_);
};

}  // namespace nacre::rocksfs
