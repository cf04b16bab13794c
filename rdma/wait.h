#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>

#include "util/simulation.h"

namespace nacre::rdma {

/// Waits until a descriptor has what its entry asks for (poll(2)), at most an hour; how many have.
/// Errors and hang-ups count. Returns early, with 0, on a signal: callers look at their deadlines.
int WaitForAny(pollfd* entries, nfds_t count, std::chrono::nanoseconds timeout);

/// The same for one descriptor.
bool WaitFor(int fd, short events, std::chrono::nanoseconds timeout);

/// How long it pays to look for a completion again and again before sleeping until one is told:
/// twice as long as last time if one came meanwhile, half as long if it was in vain. One thread at
/// a time may use it.
class AdaptiveSpin {
 public:
  AdaptiveSpin(std::chrono::nanoseconds shortest, std::chrono::nanoseconds longest)
      : shortest_(shortest), longest_(longest), now_(shortest) {}

  /// Whether `found` came true within `timeout` or the spin's own time.
  template <typename Found>
  bool Until(const Found& found, std::chrono::nanoseconds timeout) {
    if (timeout <= std::chrono::nanoseconds(0)) return false;
    if (Simulation::Current() != nullptr) return found();
    const bool successful = Spin(found, std::min(now_, timeout));
    now_ = successful ? std::min(longest_, now_ * 2) : std::max(shortest_, now_ / 2);
    return successful;
  }

 private:
  template <typename Found>
  static bool Spin(const Found& found, std::chrono::nanoseconds time) {
    constexpr int kTurnsPerLook = 8;  // The clock costs as much as several turns.
    const auto end = std::chrono::steady_clock::now() + time;
    do {
      for (int i = 0; i < kTurnsPerLook; i++) {
        if (found()) return true;
        Pause();
      }
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  const std::chrono::nanoseconds shortest_;
  const std::chrono::nanoseconds longest_;
  std::chrono::nanoseconds now_;
};

}  // namespace nacre::rdma
