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

bool LockTable::TryLock(SlotLock lock) {
  std::atomic<Word>& word = (*slots_)[lock.slot].word;
  Word seen = word.load(std::memory_order_relaxed);
  while ((seen & kWaited) == 0 && Admits(seen, lock.mode)) {
    if (word.compare_exchange_weak(seen, With(seen, lock.mode), std::memory_order_acquire,
                                   std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

bool LockTable::Awaiter::await_suspend(std::coroutine_handle<> waiter) {
  Slot& slot = (*table_->slots_)[lock_.slot];
  const MutexLock guard(&slot.mutex);
  Word seen = slot.word.load(std::memory_order_relaxed);
  // While others wait this comes behind them.
  while ((seen & kWaited) == 0) {
    const bool admitted = Admits(seen, lock_.mode);
    const Word next = admitted ? With(seen, lock_.mode) : seen | kWaited;
    if (!slot.word.compare_exchange_weak(seen, next, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
      continue;
    }
    if (admitted) return false;
    break;
  }
  waiter_ = waiter;
  (slot.first == nullptr ? slot.first : slot.last->next_) = this;
  slot.last = this;
  return true;
}

void LockTable::Unlock(SlotLock lock) {
  Slot& slot = (*slots_)[lock.slot];
  Word seen = slot.word.load(std::memory_order_relaxed);
  while ((seen & kWaited) == 0) {
    if (slot.word.compare_exchange_weak(seen, seen - kHolder, std::memory_order_release,
                                        std::memory_order_relaxed)) {
      return;
    }
  }
  const MutexLock guard(&slot.mutex);
  // The last one may have been granted its lock meanwhile: then others change the word, too.
  seen = slot.word.fetch_sub(kHolder, std::memory_order_acq_rel) - kHolder;
  while (slot.first != nullptr && Admits(seen, slot.first->lock_.mode)) {
    // It is gone as soon as its coroutine is resumed.
    Awaiter* const granted = std::exchange(slot.first, slot.first->next_);
    seen = With(seen, granted->lock_.mode);
    if (slot.first == nullptr) seen &= ~kWaited;
    slot.word.store(seen, std::memory_order_release);
    granted->loop_->Resume(granted->waiter_);
  }
}

}  // namespace nacre::server
