#include "server/store/lock_table.h"

#include <algorithm>
#include <utility>

#include "util/hash.h"

namespace nacre::server {

size_t LockTable::SlotOf(int database, std::string_view key) {
  return (Hash64(Slice(key)) + static_cast<size_t>(database) * 0x9e3779b9) % kSlots;
}

void LockTable::Normalize(std::vector<SlotLock>* locks) {
  std::sort(locks->begin(), locks->end(), [](const SlotLock& a, const SlotLock& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.mode > b.mode;
  });
  const auto same = [](SlotLock& a, const SlotLock& b) {
    if (a.slot != b.slot) return false;
    // A reader that is a replacer as well must keep others from both.
    if (a.mode != b.mode) a.mode = LockMode::kChange;
    return true;
  };
  locks->erase(std::unique(locks->begin(), locks->end(), same), locks->end());
}

std::vector<SlotLock> LockTable::All() {
  std::vector<SlotLock> locks(kSlots);
  for (size_t slot = 0; slot < kSlots; ++slot) locks[slot] = {slot, LockMode::kChange};
  return locks;
}

bool LockTable::Awaiter::await_suspend(std::coroutine_handle<> waiter) {
  Slot& slot = (*table_->slots_)[lock_.slot];
  const MutexLock guard(&slot.mutex);
  if (slot.first == nullptr && slot.Admits(lock_.mode)) {
    slot.mode = lock_.mode;
    ++slot.holders;
    return false;
  }
  waiter_ = waiter;
  (slot.first == nullptr ? slot.first : slot.last->next_) = this;
  slot.last = this;
  return true;
}

void LockTable::Unlock(SlotLock lock) {
  Slot& slot = (*slots_)[lock.slot];
  const MutexLock guard(&slot.mutex);
  --slot.holders;
  while (slot.first != nullptr && slot.Admits(slot.first->lock_.mode)) {
    // It is gone as soon as its coroutine is resumed.
    Awaiter* const granted = std::exchange(slot.first, slot.first->next_);
    slot.mode = granted->lock_.mode;
    ++slot.holders;
    granted->loop_->Resume(granted->waiter_);
  }
}

}  // namespace nacre::server
