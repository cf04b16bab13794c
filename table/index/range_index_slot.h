#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>

#include "table/index/loaded_range_index.h"
#include "util/mutex.h"

namespace nacre {

class IndexMemory;

/// Where an open table keeps its range index. With an IndexMemory the index may have to make room
/// for those of other tables, and be read again when it is used again; without one it stays.
///
/// Thread safety: all methods may be called from many threads at once.
class RangeIndexSlot {
 public:
  /// `memory` may be null, else it outlives this. `section_bytes`: of the table's range index.
  RangeIndexSlot(IndexMemory* memory, uint64_t section_bytes);
  ~RangeIndexSlot();
  RangeIndexSlot(const RangeIndexSlot&) = delete;
  RangeIndexSlot& operator=(const RangeIndexSlot&) = delete;

  /// Null: it is not here. Without an IndexMemory this counts no reference, so the slot has to
  /// outlive what is answered; it costs one load.
  RangeIndexRef Get() const {
    // Acquire: pairs with Keep.
    if (const LoadedRangeIndex* forever = forever_.load(std::memory_order_acquire)) [[likely]] {
      return {RangeIndexRef(), forever};
    }
    return memory_ == nullptr ? nullptr : GetCounted();
  }
  /// One that had to go but is still held by somebody; null: there is none. Puts it back.
  RangeIndexRef Recall() EXCLUDES(mutex_);
  /// Keeps it, if there is room or others can make some.
  void Keep(RangeIndexRef index) EXCLUDES(mutex_);
  /// Whether it could be kept without that others have to go.
  bool HasRoom() const;
  size_t MemoryUsage() const;

 private:
  friend class IndexMemory;

  RangeIndexRef GetCounted() const EXCLUDES(mutex_);

  IndexMemory* const memory_;
  const uint64_t section_bytes_;
  std::atomic<const LoadedRangeIndex*> forever_{nullptr};  ///< Of index_, without memory_.
  mutable std::atomic<bool> used_{false};  ///< Since memory_ looked last. A hint, so relaxed.

  mutable Mutex mutex_;  ///< After that of memory_. Never held over I/O.
  RangeIndexRef index_ GUARDED_BY(mutex_);
  std::weak_ptr<const LoadedRangeIndex> last_ GUARDED_BY(mutex_);

  // These are guarded by memory_'s mutex.
  uint64_t charged_ = 0;  ///< 0: it is not in memory_'s list.
  std::list<RangeIndexSlot*>::iterator place_;
};

}  // namespace nacre
