#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "db/context/database_state.h"
#include "db/write/write_sequencer.h"
#include "util/mutex.h"

namespace nacre {

/// A write that was answered a failure while its ticket could not be finished: the log has not
/// acknowledged its record, or too many writes before it were under way.
struct UnsettledWrite {
  WriteSequencer::Ticket ticket{};
  uint64_t position = 0;  ///< End of its record in the log; 0: nothing is to be awaited there.
};

/// The unsettled writes of a database. Their entries are in MemTables, and whatever was written
/// later is published only after they are.
///
/// Thread safety: all methods may be called from many threads at once.
class UnsettledWrites {
 public:
  void Add(const UnsettledWrite& write) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    by_sequence_.emplace(write.ticket.first, write);
    any_.store(true, std::memory_order_release);
  }
  /// The caller has finished its ticket.
  void Remove(const UnsettledWrite& write) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    by_sequence_.erase(write.ticket.first);
    any_.store(!by_sequence_.empty(), std::memory_order_release);
  }
  /// Acquire: pairs with the changes.
  bool any() const { return any_.load(std::memory_order_acquire); }
  /// False if there is none; else the one that all others wait for, if only these are at work.
  bool First(UnsettledWrite* write) const EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if (by_sequence_.empty()) return false;
    *write = by_sequence_.begin()->second;
    return true;
  }

 private:
  std::atomic<bool> any_{false};
  mutable Mutex mutex_ ACQUIRED_AFTER(&DatabaseState::mutex);
  std::map<SequenceNumber, UnsettledWrite> by_sequence_ GUARDED_BY(mutex_);
};

}  // namespace nacre
