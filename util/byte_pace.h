#pragma once

#include <atomic>
#include <cstdint>

#include "nacre/status.h"
#include "util/clock.h"

namespace nacre {

/// Lets bytes pass at a rate. Sleeps in short pieces, so that cancelled work ends soon.
///
/// Thread safety: none, but for `*cancelled`.
class BytePace {
 public:
  /// `bytes_per_second`: 0 is no limit. `cancelled` may be null.
  BytePace(Clock* clock, uint64_t bytes_per_second, const std::atomic<bool>* cancelled);

  /// Returns when `bytes` more may have passed. `Aborted` once cancelled.
  Status Pass(uint64_t bytes);

 private:
  Clock* const clock_;
  const uint64_t bytes_per_second_;
  const std::atomic<bool>* const cancelled_;
  const uint64_t start_nanos_;
  uint64_t bytes_ = 0;
};

}  // namespace nacre
