#pragma once

#include <atomic>

namespace nacre {

/// Fences between processes that share memory, whose cost lies with the side that rarely needs one.
/// Of a thread that stores to one place, calls LightFence and loads from another, and a thread that
/// stores to the second place, calls HeavyFence and loads from the first, at least one sees what
/// the other has stored; the threads may belong to two processes.
///
/// The heavy one has the kernel run a barrier on each processor where a process that has prepared
/// is running (`membarrier`), which takes some ten microseconds. A process that has not prepared,
/// or could not, pays for each light fence instead, so its peers need not know which it is.
///
/// Thread safety: all of it may be used from many threads at once.
class ProcessFence {
 public:
  /// Makes this process's light fences cheap from some moment on. It can take ten milliseconds,
  /// once in the life of a process. Without effect on a kernel that lacks it, and under TSan, which
  /// does not know it.
  static void Prepare();

  static void LightFence() {
    // Relaxed: heavy fences use membarrier in any case, whether or not this thread knows.
    if (prepared_.load(std::memory_order_relaxed)) [[likely]] {
      // The processor may still move later loads before earlier stores; the heavy fence forbids it
      // where it matters. The compiler must not.
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);  // Pairs with that in HeavyFence.
    }
  }

  static void HeavyFence();

 private:
  static inline std::atomic<bool> prepared_{false};
};

}  // namespace nacre
