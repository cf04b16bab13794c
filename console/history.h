#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "util/mutex.h"

namespace nacre::console {

/// The last values of several figures, which were all taken at the same times.
///
/// Thread safety: all methods may be called from many threads at once.
class History {
 public:
  /// `names`: the figures', which need no escapes in JSON. `capacity`: how many times are kept.
  History(std::vector<std::string> names, size_t capacity);

  /// `values`: one for each figure, in the order of the names; NaN: not known.
  /// `milliseconds`: since 1970, of the machine's clock.
  void Add(int64_t milliseconds, std::vector<double> values) EXCLUDES(mutex_);
  size_t size() const EXCLUDES(mutex_);
  /// {"names": [...], "points": [[milliseconds, value, ...], ...]}, oldest first; null: not known.
  std::string Json() const EXCLUDES(mutex_);

 private:
  struct Point {
    int64_t milliseconds = 0;
    std::vector<double> values;
  };

  const std::vector<std::string> names_;
  const size_t capacity_;
  mutable Mutex mutex_;
  std::deque<Point> points_ GUARDED_BY(mutex_);
};

}  // namespace nacre::console
