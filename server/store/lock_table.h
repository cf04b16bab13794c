#pragma once

#include <array>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "nacre/task.h"
#include "server/loop/event_loop.h"
#include "util/memory/prefetch.h"
#include "util/mutex.h"

namespace nacre::server {

/// Locks of the same mode exclude one another only if it is kChange.
enum class LockMode : uint8_t {
  kRead,
  kReplace,  ///< Writes without regard to what there was: the last one stays.
  kChange,
};

struct SlotLock {
  size_t slot = 0;
  LockMode mode = LockMode::kRead;
};

/// The locks by which commands on the same keys take effect one after the other. A slot stands for
/// all keys that are hashed to it. Locks are granted in the order in which they were asked for.
///
/// There is no deadlock, and no wait without an end: several slots are locked in their order, and
/// what holds a lock waits for nothing but the database, whose operations have a deadline, and
/// slots behind.
///
/// Thread safety: all methods may be called from many threads at once. Coroutines are resumed on
/// their loops.
class LockTable {
 public:
  static constexpr size_t kSlots = 1 << 14;

  LockTable() : slots_(std::make_unique<std::array<Slot, kSlots>>()) {}

  static size_t SlotOf(int database, std::string_view key);
  /// Has each slot once, in order, with the strongest mode that it is named with.
  static void Normalize(std::vector<SlotLock>* locks);
  /// All slots, so that nothing else reads or writes.
  static std::vector<SlotLock> All();

  /// `co_await table.Lock(loop, lock)`.
  class Awaiter {
   public:
    Awaiter(LockTable* table, EventLoop* loop, SlotLock lock)
        : table_(table), loop_(loop), lock_(lock) {}
    bool await_ready() { return false; }
    /// False if the lock was to be had at once.
    bool await_suspend(std::coroutine_handle<> waiter);
    void await_resume() {}

   private:
    friend class LockTable;
    LockTable* const table_;
    EventLoop* const loop_;
    const SlotLock lock_;
    std::coroutine_handle<> waiter_;
    Awaiter* next_ = nullptr;
  };
  Awaiter Lock(EventLoop* loop, SlotLock lock) { return {this, loop, lock}; }
  /// Takes the lock if it is to be had at once.
  bool TryLock(SlotLock lock);
  void Unlock(SlotLock lock);
  /// Has the processor fetch the slot, which is to be locked soon.
  void Prefetch(SlotLock lock) const {
    PrefetchLine</*kWrite=*/1>(reinterpret_cast<const char*>(&(*slots_)[lock.slot]));
  }

 private:
  /// The word of a slot: how many hold it, above the mode that they hold it with, above kWaited.
  ///
  /// Invariant: kWaited is set while any wait, and only while the mutex is held or any wait. While
  /// it is set the word is changed only with the mutex held; while it is not, by a compare-and-swap
  /// of any thread. So locks are taken past the mutex only while none wait, and a holder that finds
  /// some waits for the mutex and grants what can be had.
  using Word = uint32_t;
  static constexpr Word kWaited = 1;
  static constexpr int kModeShift = 1;
  static constexpr Word kModeMask = 3;
  static constexpr Word kHolder = 8;

  struct alignas(64) Slot {
    std::atomic<Word> word{0};
    Mutex mutex;
    Awaiter* first GUARDED_BY(mutex) = nullptr;  ///< Those that wait, a list.
    Awaiter* last GUARDED_BY(mutex) = nullptr;
  };

  /// Whether a slot can have one more holder.
  static bool Admits(Word word, LockMode wanted) {
    if (word < kHolder) return true;
    return wanted != LockMode::kChange &&
           (word >> kModeShift & kModeMask) == static_cast<Word>(wanted);
  }
  /// The word with one more holder.
  static Word With(Word word, LockMode mode) {
    if (word >= kHolder) return word + kHolder;
    return kHolder | static_cast<Word>(mode) << kModeShift | (word & kWaited);
  }

  const std::unique_ptr<std::array<Slot, kSlots>> slots_;
};

}  // namespace nacre::server
