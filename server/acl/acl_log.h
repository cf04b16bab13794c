#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "util/mutex.h"

namespace nacre::server {

/// The last requests that users were refused, for ACL LOG. Those of a kind are one entry.
///
/// Thread safety: all methods may be called from many threads at once.
class AclLog {
 public:
  struct Entry {
    std::string reason;   ///< "auth", "command", "key" or "channel".
    std::string context;  ///< "toplevel", "multi" or "lua".
    std::string object;   ///< What was refused.
    std::string user;
    std::string client;    ///< As CLIENT LIST describes it.
    uint64_t last_ms = 0;  ///< When it was refused last, in milliseconds of Unix time.
    uint64_t count = 1;    ///< How often it was.

    bool SameAs(const Entry& other) const {
      return reason == other.reason && context == other.context && object == other.object &&
             user == other.user;
    }
  };

  /// Keeps the `entries_max` last ones.
  void Add(Entry entry, size_t entries_max) EXCLUDES(mutex_) {
    constexpr uint64_t kTogetherMs = 60'000;
    const MutexLock lock(&mutex_);
    const auto known = std::ranges::find_if(entries_, [&](const Entry& each) {
      return each.SameAs(entry) && entry.last_ms < each.last_ms + kTogetherMs;
    });
    if (known != entries_.end()) {
      entry.count += known->count;
      entries_.erase(known);
    }
    entries_.push_front(std::move(entry));
    if (entries_.size() > entries_max) entries_.resize(entries_max);
  }
  /// The last ones first.
  std::deque<Entry> Get(size_t count) const EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    const auto end = entries_.begin() + static_cast<ptrdiff_t>(std::min(count, entries_.size()));
    return {entries_.begin(), end};
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
