#pragma once

#include <atomic>
#include <new>

#include "db/context/database_state.h"
#include "nacre/status.h"
#include "util/mutex.h"

namespace nacre {

/// Why a database takes no writes until it is opened again, though reads go on: a write broke off
/// between its ticket and its end, so that the log or the MemTables may have a part of it, or the
/// sequence numbers are used up. What was acknowledged before is not touched.
///
/// Thread safety: all methods may be called from many threads at once.
class WriteFault {
 public:
  /// The first fault stays.
  void Set(const Status& fault) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if (!fault_.ok()) return;
    try {
      fault_ = fault;
    } catch (const std::bad_alloc&) {
      fault_ = Status::Aborted({});  // Needs no memory.
    }
    is_set_.store(true, std::memory_order_release);
  }
  /// OK: there is none. Acquire: pairs with Set.
  Status status() const EXCLUDES(mutex_) {
    if (!is_set_.load(std::memory_order_acquire)) [[likely]]
      return Status::OK();
    MutexLock lock(&mutex_);
    return fault_;
  }

 private:
  std::atomic<bool> is_set_{false};
  mutable Mutex mutex_ ACQUIRED_AFTER(&DatabaseState::mutex);
  Status fault_ GUARDED_BY(mutex_);
};

}  // namespace nacre
