#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>

#include "table/index/loaded_range_index.h"
#include "util/mutex.h"

namespace nacre {

class IndexMemory;

/// Holds an open table's range index. With an IndexMemory the index may have to make room for those
/// of other tables, and be read again when it is used again; without one it stays.
///
/// Thread safety: all methods may be called from many threads at once.
class RangeIndexSlot {
 public:
  /// `memory` may be null, else it outlives this. `section_bytes`: of the table's range index.
  RangeIndexSlot(IndexMemory* memory, uint64_t section_bytes);
  ~RangeIndexSlot();
  RangeIndexSlot(const RangeIndexSlot&) = delete;
  RangeIndexSlot& operator=(const RangeIndexSlot&) = delete;

  /// The index, or null if it is not resident. Without an IndexMemory this counts no reference and
  /// costs one load, so the slot has to outlive the result.
  RangeIndexRef Get() const {
    // Acquire: pairs with Keep.
    if (const LoadedRangeIndex* forever = forever_.load(std::memory_order_acquire)) [[likely]] {
      return {RangeIndexRef(), forever};
    }
    return memory_ == nullptr ? nullptr : GetCounted();
  }
  /// Puts an evicted index back that a reader still holds. Null if there is none.
  RangeIndexRef Recall() EXCLUDES(mutex_);
  /// Keeps it, if there is room or others can make some.
  void Keep(RangeIndexRef index) EXCLUDES(mutex_);
  /// Whether the index fits without an eviction.
  bool HasRoom() const;
  size_t MemoryUsage() const;

 private:
  friend class IndexMemory;

  RangeIndexRef GetCounted() const EXCLUDES(mutex_);

  IndexMemory* const memory_;
  const uint64_t section_bytes_;
  std::atomic<const LoadedRangeIndex*> forever_{
      nullptr};  ///< The same as index_, where there is no memory_.
  mutable std::atomic<bool> used_{
      false};  ///< Whether it was used since memory_ looked last. A hint, so relaxed.

  mutable Mutex mutex_;  ///< Acquired after the mutex of memory_. It is never held over I/O.
  RangeIndexRef index_ GUARDED_BY(mutex_);
  std::weak_ptr<const LoadedRangeIndex> last_ GUARDED_BY(mutex_);

  // These are guarded by memory_'s mutex.
  uint64_t charged_ = 0;  ///< 0: it is not in memory_'s list.
  std::list<RangeIndexSlot*>::iterator place_;
};

}  // namespace nacre
