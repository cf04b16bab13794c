#pragma once

#include <poll.h>

#include <cerrno>
#include <chrono>

#include "util/clock.h"

namespace nacre::server {

/// Waits for `events` (POLLIN and so on) at a socket. False if there are none before the deadline.
inline bool AwaitSocket(int socket, short events, const Deadline& deadline) {
  pollfd polled{.fd = socket, .events = events, .revents = 0};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.Remaining());
    const int ready = ::poll(&polled, 1, static_cast<int>(left.count()));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

}  // namespace nacre::server
