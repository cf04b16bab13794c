#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "nacre/task.h"
#include "server/loop/event_loop.h"
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
  void Unlock(SlotLock lock);

 private:
  struct Slot {
    Mutex mutex;
    LockMode mode GUARDED_BY(mutex) = LockMode::kRead;
    uint32_t holders GUARDED_BY(mutex) = 0;
    Awaiter* first GUARDED_BY(mutex) = nullptr;  ///< Those that wait, a list.
    Awaiter* last GUARDED_BY(mutex) = nullptr;

    /// Whether it can have one more holder. Requires the mutex.
    bool Admits(LockMode wanted) const REQUIRES(mutex) {
      return holders == 0 || (mode == wanted && wanted != LockMode::kChange);
    }
  };

  const std::unique_ptr<std::array<Slot, kSlots>> slots_;
};

}  // namespace nacre::server
