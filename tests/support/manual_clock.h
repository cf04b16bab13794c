#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "util/clock.h"

namespace nacre {

/// Stands still but for Advance and for sleeps, which end at once and move it on. Thread-safe.
class ManualClock final : public Clock {
 public:
  uint64_t NowNanos() override { return nanos_.load(); }
  void SleepFor(std::chrono::nanoseconds duration) override { Advance(duration); }
  void Advance(std::chrono::nanoseconds duration) {
    nanos_.fetch_add(static_cast<uint64_t>(duration.count()));
  }

 private:
  std::atomic<uint64_t> nanos_{1'000'000'000};
};

}  // namespace nacre
