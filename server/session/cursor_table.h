#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "util/mutex.h"

namespace nacre::server {

/// Where scans go on. A cursor of Redis is a number, and a place in ordered rows is a key of any
/// length: so this remembers the places of the cursors that were given out last.
///
/// Thread safety: all methods may be called from many threads at once.
class CursorTable {
 public:
  static constexpr uint64_t kCursorsMax = 1 << 16;

  /// A cursor for `place`; never 0, which stands for the beginning and the end.
  uint64_t Add(std::string place) EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    const uint64_t cursor = ++last_;
    places_[cursor] = std::move(place);
    if (cursor > kCursorsMax) places_.erase(cursor - kCursorsMax);
    return cursor;
  }
  /// False if the cursor is not known, or not any more. It may be used again.
  bool Find(uint64_t cursor, std::string* place) const EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    const auto found = places_.find(cursor);
    if (found == places_.end()) return false;
    *place = found->second;
    return true;
  }

 private:
  mutable Mutex mutex_;
  uint64_t last_ GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, std::string> places_ GUARDED_BY(mutex_);
};

}  // namespace nacre::server
