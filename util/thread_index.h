#pragma once

#include <cstddef>

namespace nacre {

/// A small number that no other live thread of the process has, handed back when the thread ends.
/// Indexes per-thread slots (epochs, sessions, arenas, counters). The one process-wide registry
/// of Nacre: thread-local storage cannot be passed as an argument.
///
/// A slot keeps what its last thread left there; the hand-over is ordered (release on thread end,
/// acquire on reuse).
class ThreadIndex {
 public:
  /// More threads than this at once are a fatal error.
  static constexpr size_t kMax = 4096;
  /// Of the calling thread, < kMax. A thread-local load after the first call.
  static size_t Current();
};

}  // namespace nacre
