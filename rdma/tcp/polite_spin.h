#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace nacre::rdma {

/// How a thread waits for what a peer is about to do before it goes to sleep: it looks again and
/// again, and lets other threads have the processor in between. That saves what a processor takes
/// to wake up, several times as long as a message under way in a virtual machine. It costs nothing
/// but the processor's own time while that has nothing else to do. When it has, the thread is away
/// for long in one of its turns; it then goes to sleep, as the system has a sleeper run soon once
/// there is news, and spins no more for a time, which grows with each time that this happens.
///
/// Spins also become shorter as they are in vain, as AdaptiveSpin's do.
///
/// Thread safety: none.
class PoliteSpin {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  /// `longest`: 0 never spins.
  explicit PoliteSpin(nanoseconds longest)
      : longest_(longest), shortest_(std::min<nanoseconds>(longest, kShortest)), now_(longest) {}

  /// Whether `found`, which takes a microsecond or so, came true within `timeout` or the spin's own
  /// time. Does not ask it if there is to be no spin.
  template <typename Found>
  bool Until(const Found& found, nanoseconds timeout) {
    if (longest_.count() == 0 || timeout.count() <= 0) return false;
    const auto start = std::chrono::steady_clock::now();
    if (start < resume_at_) return false;
    const auto end = start + std::min(now_, timeout);
    for (auto turn = start; turn < end;) {
      if (found()) {
        now_ = std::min(longest_, now_ * 2);
        pause_ = std::max<nanoseconds>(kFirstPause, pause_ - pause_ / kTurnsToForget);
        return true;
      }
      ::sched_yield();
      const auto later = std::chrono::steady_clock::now();
      if (later - turn > kLongTurn) {
        resume_at_ = later + pause_;
        pause_ = std::min<nanoseconds>(kLastPause, pause_ * 2);
        return false;
      }
      turn = later;
    }
    now_ = std::max(shortest_, now_ / 2);
    return false;
  }

 private:
  static constexpr std::chrono::microseconds kShortest{4};
  /// Peers that share the processor are through sooner.
  static constexpr std::chrono::microseconds kLongTurn{100};
  static constexpr std::chrono::milliseconds kFirstPause{5};
  static constexpr std::chrono::milliseconds kLastPause{1000};
  static constexpr int kTurnsToForget = 64;

  const nanoseconds longest_;
  const nanoseconds shortest_;
  nanoseconds now_;
  std::chrono::steady_clock::time_point resume_at_{};
  nanoseconds pause_ = kFirstPause;
};

}  // namespace nacre::rdma
