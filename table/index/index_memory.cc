#include "table/index/index_memory.h"

#include <algorithm>
#include <utility>

#include "table/index/range_index_slot.h"

namespace nacre {
namespace {

uint64_t Less(uint64_t whole, uint64_t part) { return whole - std::min(whole, part); }

}  // namespace

uint64_t IndexMemory::used() const {
  MutexLock lock(&mutex_);
  return point_bytes_ + tombstone_bytes_ + range_bytes_;
}

uint64_t IndexMemory::Share() const {
  const uint64_t for_ranges = std::min(budget_ / kRangeShare, InMemory(all_sections_));
  return Less(budget_, for_ranges + tombstone_bytes_);
}

uint64_t IndexMemory::PointShare() const {
  MutexLock lock(&mutex_);
  return Share();
}

bool IndexMemory::HasRoomForPointIndex(uint64_t bytes) const {
  MutexLock lock(&mutex_);
  return point_bytes_ + bytes <= Share();
}

uint64_t IndexMemory::RangeCapacity() const {
  return Less(budget_, point_bytes_ + tombstone_bytes_);
}

void IndexMemory::ReplacePointTier(uint64_t old_bytes, uint64_t new_bytes) {
  std::vector<RangeIndexRef> freed;
  MutexLock lock(&mutex_);
  point_bytes_ += new_bytes - old_bytes;
  MakeRoom(RangeCapacity(), &freed);
}

void IndexMemory::AddRangeTombstones(uint64_t bytes) {
  std::vector<RangeIndexRef> freed;
  MutexLock lock(&mutex_);
  tombstone_bytes_ += bytes;
  MakeRoom(RangeCapacity(), &freed);
}

void IndexMemory::RemoveRangeTombstones(uint64_t bytes) {
  MutexLock lock(&mutex_);
  tombstone_bytes_ -= bytes;
}

void IndexMemory::AddTable(uint64_t section_bytes) {
  MutexLock lock(&mutex_);
  all_sections_ += section_bytes;
}

void IndexMemory::RemoveTable(RangeIndexSlot* slot) {
  std::vector<RangeIndexRef> freed;
  MutexLock lock(&mutex_);
  all_sections_ -= slot->section_bytes_;
  if (slot->charged_ > 0) Drop(slot, &freed);
}

void IndexMemory::Keep(RangeIndexSlot* slot, RangeIndexRef index) {
  std::vector<RangeIndexRef> freed;
  MutexLock lock(&mutex_);
  if (slot->charged_ > 0) return;  // Another reader of the table has brought one.
  const uint64_t bytes = index->MemoryUsage();
  const uint64_t capacity = RangeCapacity();
  const bool fits = bytes <= capacity;
  if (fits) {
    MakeRoom(capacity - bytes, &freed);
    slot->charged_ = bytes;
    range_bytes_ += bytes;
    slot->place_ = clock_.insert(clock_.end(), slot);
  }
  MutexLock slot_lock(&slot->mutex_);
  slot->last_ = index;
  if (fits) slot->index_ = std::move(index);
}

bool IndexMemory::HasRoomFor(uint64_t section_bytes) const {
  MutexLock lock(&mutex_);
  return range_bytes_ + InMemory(section_bytes) <= RangeCapacity();
}

void IndexMemory::MakeRoom(uint64_t bytes, std::vector<RangeIndexRef>* freed) {
  for (int spared = 0; range_bytes_ > bytes;) {
    RangeIndexSlot* const next = clock_.front();
    if (spared < kSecondChances && next->used_.exchange(false, std::memory_order_relaxed)) {
      ++spared;
      clock_.splice(clock_.end(), clock_, next->place_);
    } else {
      Drop(next, freed);
    }
  }
}

void IndexMemory::Drop(RangeIndexSlot* slot, std::vector<RangeIndexRef>* freed) {
  range_bytes_ -= slot->charged_;
  slot->charged_ = 0;
  clock_.erase(slot->place_);
  MutexLock lock(&slot->mutex_);
  freed->push_back(std::move(slot->index_));
}

}  // namespace nacre
