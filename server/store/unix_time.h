#pragma once

#include <cstdint>
#include <ctime>

namespace nacre::server {

/// Microseconds since 1970. Redis's expiries are times of day, so that they mean the same to the
/// next server; everything else in this program is timed by a Clock.
inline uint64_t UnixMicros() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}
inline uint64_t UnixMillis() { return UnixMicros() / 1000; }

}  // namespace nacre::server
