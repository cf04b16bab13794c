#pragma once

#include <cstddef>
#include <cstdint>

namespace nacre {

/// A small number that no other live thread of the process has, handed back when the thread ends.
/// Indexes per-thread slots (epochs, sessions, arenas, counters; see util/per_thread.h).
/// The one process-wide registry of Nacre: thread-local storage cannot be passed as an argument.
///
/// Numbers are dense: a new thread gets the smallest that is free. A slot keeps what its last
/// thread left there; the hand-over is ordered (release on thread end, acquire on reuse).
class ThreadIndex {
 public:
  /// One thread more than this at once gets std::system_error, as from std::thread. A slot of a
  /// thread that there is not costs addresses only.
  static constexpr size_t kMax = size_t{1} << 17;

  /// The calling thread's index, < kMax. It costs a thread-local load after the first call.
  static size_t Current() {
    const uint32_t number = current_;
    if (number == kNone) [[unlikely]]
      return Register();
    return number;
  }

  /// One more than the largest index given out so far: bounds a walk over all slots. A thread
  /// that registers during the walk may be missed unless the caller orders the two.
  static size_t Limit();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  class Registry;

  static size_t Register();
  static void Unregister(void* registry);

  static inline constinit thread_local uint32_t current_ = kNone;
};

}  // namespace nacre
