#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "util/mutex.h"

namespace nacre::server {

/// The last commands that took long, for SLOWLOG.
///
/// Thread safety: all methods may be called from many threads at once.
class SlowLog {
 public:
  struct Entry {
    int64_t id = 0;
    int64_t unix_seconds = 0;
    int64_t micros = 0;  ///< From when it began until it could be answered.
    std::vector<std::string> args;
    std::string client_address;
    std::string client_name;
  };

  /// Keeps the `entries_max` last ones; gives the entry its id.
  void Add(Entry entry, size_t entries_max) EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    entry.id = next_id_++;
    entries_.push_front(std::move(entry));
    if (entries_.size() > entries_max) entries_.resize(entries_max);
  }
  /// The last ones first.
  std::vector<Entry> Get(size_t count) const EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    const auto end = entries_.begin() + static_cast<ptrdiff_t>(std::min(count, entries_.size()));
    return {entries_.begin(), end};
  }
  size_t size() const EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    return entries_.size();
  }
  void Reset() EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    entries_.clear();
  }

 private:
  mutable Mutex mutex_;
  std::deque<Entry> entries_ GUARDED_BY(mutex_);
  int64_t next_id_ GUARDED_BY(mutex_) = 0;
};

}  // namespace nacre::server
