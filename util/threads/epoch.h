#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>

#include "util/clock.h"
#include "util/mutex.h"
#include "util/per_thread.h"

namespace nacre {

/// Epoch-based reclamation: readers pin, writers unlink and retire, and what was retired is
/// destroyed once no reader that could still see it is pinned.
///
/// A pin is a store to a cache line of the thread's own and costs no shared write and no fence:
/// the order "pin, then load the shared pointer" is kept by `membarrier` on the reclaiming side
/// (by a fence in the pin where the kernel has none, under TSan, and before PrepareToReclaim).
/// The shared pointer itself is published by a release store and loaded by an acquire load.
///
/// A domain whose guards are waited for often (AwaitGuards) has its pins fence for a while, so that
/// those who wait do without `membarrier`, which interrupts every processor. Pins look at `fences_`
/// behind their store; who waits looks at `settled_` behind what keeps new guards away.
///
/// Invariant: while `settled_` holds, each pin has fenced, or was visible before a `membarrier`
/// between `fences_` and `settled_` being set. `settled_` is cleared before `fences_`, so a pin
/// that does not fence sees what those stored that found `settled_` set.
///
/// Invariant: an object retired at epoch e was unreachable for every pin that shows an epoch
/// > e; it is destroyed when every pinned slot shows an epoch > e or is idle.
///
/// Thread safety: all methods may be called from many threads at once. A thread may hold nested
/// guards. The domain must outlive its guards; its destructor destroys all that is retired.
class EpochDomain {
  struct Slot;

 public:
  EpochDomain() = default;
  ~EpochDomain();
  EpochDomain(const EpochDomain&) = delete;
  EpochDomain& operator=(const EpochDomain&) = delete;

  /// Pins the calling thread; must be destroyed by the same thread.
  class Guard {
   public:
    explicit Guard(EpochDomain* domain) : slot_(&domain->slots_.Mine()) {
      if (slot_->depth++ == 0) domain->Pin(slot_);
    }
    ~Guard() {
      // Pairs with the acquire in Collect: what the reader did with the object comes before its
      // destruction.
      if (--slot_->depth == 0) slot_->epoch.store(kIdle, std::memory_order_release);
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Slot* const slot_;
  };

  /// Calls `destroy` (on whichever thread finds it safe, with no lock held) after all current
  /// guards are gone. The object must already be unreachable for new readers. Costs a few
  /// microseconds; unbounded, so callers retire no faster than they can afford.
  void Retire(std::function<void()> destroy) EXCLUDES(mutex_);

  /// What the first Retire or Collect with work to do would do: has the kernel make ready for
  /// `membarrier`, which can take it ten milliseconds, once in the life of a process.
  void PrepareToReclaim();

  /// Returns once all guards of before have ended; false if that takes until the deadline. The
  /// caller has stored, by sequentially consistent operations, what keeps away new guards.
  bool AwaitGuards(Deadline deadline) EXCLUDES(mutex_);
  /// Whether pins fence, as AwaitGuards is called often.
  bool fencing() const { return fences_.load(std::memory_order_relaxed); }
  /// Ends that unless AwaitGuards has been called of late. To be called now and then by those that
  /// pin.
  void RelaxIfQuiet(uint64_t now_nanos) EXCLUDES(mutex_);

  /// Destroys what can be destroyed now. Called by Retire; also useful after a long-held guard.
  void Collect() EXCLUDES(mutex_);

 private:
  static constexpr uint64_t kIdle = 0;

  struct Slot {
    std::atomic<uint64_t> epoch;  ///< The epoch of the outermost pin, or kIdle.
    uint32_t depth;               ///< Guards of the owning thread.
  };
  struct Retired {
    uint64_t epoch;
    std::function<void()> destroy;
  };

  void Pin(Slot* slot) {
    // Acquire pairs with the increment in Retire: a pin that shows an epoch after an object's
    // cannot find that object any more.
    const uint64_t epoch = epoch_.load(std::memory_order_acquire);
    slot->epoch.store(epoch, std::memory_order_relaxed);
    // Acquire: who does not fence any more sees what others stored while all did. For `asymmetric_`
    // relaxed would do: once it is set, reclaimers use membarrier, whether or not this pin knows.
    if (asymmetric_.load(std::memory_order_relaxed) && !fences_.load(std::memory_order_acquire))
        [[likely]] {
      // The processor may still move later loads before the store; membarrier in HeavyFence
      // forbids it where it matters. The compiler must not.
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);  // Pairs with HeavyFence.
    }
  }

  /// After this, every pin is visible here, or its owner sees all that this thread has seen.
  void HeavyFence();
  /// The smallest epoch that any thread shows; UINT64_MAX when all are idle.
  uint64_t OldestPin() const;

  /// As HeavyFence, without `membarrier` if AwaitGuards is called often.
  void FenceForGuards(uint64_t now_nanos) EXCLUDES(mutex_);

  std::atomic<bool> asymmetric_{false};  ///< `membarrier` is ready.
  std::atomic<bool> fences_{false};      ///< Pins fence.
  std::atomic<bool> settled_{false};     ///< They all do.
  alignas(64) std::atomic<uint64_t> epoch_{kIdle + 1};
  PerThread<Slot> slots_;
  alignas(64) Mutex mutex_;
  std::atomic<uint64_t> awaited_nanos_{0};          ///< When AwaitGuards was called the last time.
  std::deque<Retired> retired_ GUARDED_BY(mutex_);  ///< These are in ascending order of epochs.
};

}  // namespace nacre
