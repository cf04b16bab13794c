#pragma once

#include <string>

namespace nacre {

/// A folder of a test's own among the temporary files, gone with this object and all that is in it.
/// A folder that cannot be made fails the test.
class TempFolder {
 public:
  TempFolder();
  /// In `parent` instead of where temporary files are.
  explicit TempFolder(const std::string& parent);
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  /// The path of `name` in it, which need not exist.
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Where files are in memory, if there is such a place here; else where temporary files are.
std::string MemoryFolder();

}  // namespace nacre
