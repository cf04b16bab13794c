#include "table/index/range_index_slot.h"

#include <utility>

#include "table/index/index_memory.h"

namespace nacre {

RangeIndexSlot::RangeIndexSlot(IndexMemory* memory, uint64_t section_bytes)
    : memory_(memory), section_bytes_(section_bytes) {
  if (memory_ != nullptr) memory_->AddTable(section_bytes_);
}

RangeIndexSlot::~RangeIndexSlot() {
  if (memory_ != nullptr) memory_->RemoveTable(this);
}

RangeIndexRef RangeIndexSlot::GetCounted() const {
  // Stored only if it says something new: many threads may use the same index.
  if (!used_.load(std::memory_order_relaxed)) used_.store(true, std::memory_order_relaxed);
  MutexLock lock(&mutex_);
  return index_;
}

RangeIndexRef RangeIndexSlot::Recall() {
  RangeIndexRef held;
  {
    MutexLock lock(&mutex_);
    held = last_.lock();
  }
  if (held != nullptr) Keep(held);
  return held;
}

void RangeIndexSlot::Keep(RangeIndexRef index) {
  if (memory_ != nullptr) {
    memory_->Keep(this, std::move(index));
    return;
  }
  MutexLock lock(&mutex_);
  index_ = std::move(index);
  forever_.store(index_.get(), std::memory_order_release);  // Pairs with Get.
}

bool RangeIndexSlot::HasRoom() const {
  return memory_ == nullptr || memory_->HasRoomFor(section_bytes_);
}

size_t RangeIndexSlot::MemoryUsage() const {
  MutexLock lock(&mutex_);
  return index_ == nullptr ? 0 : index_->MemoryUsage();
}

}  // namespace nacre
