#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "table/format/placement.h"
#include "util/mutex.h"

namespace nacre {

/// How many bytes each node has of the copies of log and manifest, for reports.
///
/// Thread safety: all methods may be called from many threads at once.
class CopyBytes {
 public:
  void Add(const std::vector<ExtentAddr>& copies) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    for (const ExtentAddr& copy : copies) {
      if (copy.start.node != kLostNode) bytes_[copy.start.node] += copy.length;
    }
  }
  void Remove(const std::vector<ExtentAddr>& copies) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    for (const ExtentAddr& copy : copies) {
      if (copy.start.node != kLostNode) bytes_[copy.start.node] -= copy.length;
    }
  }
  std::map<NodeId, uint64_t> ByNode() const EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return bytes_;
  }

 private:
  mutable Mutex mutex_;
  std::map<NodeId, uint64_t> bytes_ GUARDED_BY(mutex_);
};

}  // namespace nacre
