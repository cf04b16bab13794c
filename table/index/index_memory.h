#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "table/index/loaded_range_index.h"
#include "util/mutex.h"

namespace nacre {

class RangeIndexSlot;

/// What a process spends on the indexes of a database's tables, and the budget for it. Three kinds
/// share that:
///
/// - Filters, and range tombstones, have to be there. They come first, and they alone may take more
///   than the budget.
/// - Point indexes are given out by the owner of the tables, up to `PointShare`. That leaves a
///   quarter to range indexes, or less where all of these need less: a lookup without a point index
///   takes one more round trip, a seek without a range index the reading of all of it.
/// - Range indexes are here when they were used lately. One that needs room evicts those that were
///   not used for longest (a clock with second chances). A reader that holds one of these keeps it
///   alive, uncounted.
///
/// Thread safety: all methods may be called from many threads at once.
class IndexMemory {
 public:
  explicit IndexMemory(uint64_t budget) : budget_(budget) {}
  IndexMemory(const IndexMemory&) = delete;
  IndexMemory& operator=(const IndexMemory&) = delete;

  /// Bytes that are counted now.
  uint64_t used() const EXCLUDES(mutex_);
  /// What point indexes and filters together should not exceed.
  uint64_t PointShare() const EXCLUDES(mutex_);
  /// Whether another point index is within it.
  bool HasRoomForPointIndex(uint64_t bytes) const EXCLUDES(mutex_);
  /// Replaces the `old_bytes` of a table. Range indexes make room.
  void ReplacePointTier(uint64_t old_bytes, uint64_t new_bytes) EXCLUDES(mutex_);
  void AddRangeTombstones(uint64_t bytes) EXCLUDES(mutex_);
  void RemoveRangeTombstones(uint64_t bytes) EXCLUDES(mutex_);

 private:
  friend class RangeIndexSlot;

  /// An eviction passes over at most so many slots that were used since the clock's last visit: a
  /// reader does not wait for a walk over all tables.
  static constexpr int kSecondChances = 16;
  static constexpr uint64_t kRangeShare = 4;  ///< One in four bytes of the budget.

  // What slots call.
  void AddTable(uint64_t section_bytes) EXCLUDES(mutex_);
  void RemoveTable(RangeIndexSlot* slot) EXCLUDES(mutex_);
  void Keep(RangeIndexSlot* slot, RangeIndexRef index) EXCLUDES(mutex_);
  bool HasRoomFor(uint64_t section_bytes) const EXCLUDES(mutex_);

  /// What a section takes in memory: its restarts are kept apart as well.
  static uint64_t InMemory(uint64_t section_bytes) { return section_bytes + section_bytes / 4; }
  uint64_t Share() const REQUIRES(mutex_);
  /// What is left for range indexes.
  uint64_t RangeCapacity() const REQUIRES(mutex_);
  /// Evicts until range indexes take `bytes` at most. The caller destroys those in `freed` without
  /// the mutex.
  void MakeRoom(uint64_t bytes, std::vector<RangeIndexRef>* freed) REQUIRES(mutex_);
  void Drop(RangeIndexSlot* slot, std::vector<RangeIndexRef>* freed) REQUIRES(mutex_);

  const uint64_t budget_;
  mutable Mutex mutex_;
  uint64_t point_bytes_ GUARDED_BY(mutex_) = 0;  ///< With filters.
  uint64_t tombstone_bytes_ GUARDED_BY(mutex_) = 0;
  uint64_t range_bytes_ GUARDED_BY(mutex_) = 0;
  /// Bytes of all open tables' sections, resident or not.
  uint64_t all_sections_ GUARDED_BY(mutex_) = 0;
  std::list<RangeIndexSlot*> clock_ GUARDED_BY(mutex_);  ///< Those that have one; next to go first.
};

}  // namespace nacre
