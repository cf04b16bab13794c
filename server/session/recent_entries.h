#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "util/mutex.h"

namespace nacre::server {

/// The last entries of a log that clients look at, such as SLOWLOG.
///
/// Thread safety: all methods may be called from many threads at once.
template <typename Entry>
class RecentEntries {
 public:
  /// Keeps the `entries_max` last ones. `prepare` is called before, with the entry and with those
  /// that there are, the last ones first; it may change both.
  template <typename Prepare>
  void Add(Entry entry, size_t entries_max, const Prepare& prepare) EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    prepare(&entry, &entries_);
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
};

}  // namespace nacre::server
