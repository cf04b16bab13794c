#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "nacre/logger.h"
#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::rdma {

/// Counts the peers that a device turned away and the frames that made no sense, and tells the log
/// of them: at most a line a second, so that a stranger cannot fill the disk.
///
/// Thread safety: all methods may be called from many threads at once.
class Refusals {
 public:
  /// `logger` may be null. `clock` outlives this.
  Refusals(std::shared_ptr<Logger> logger, Clock* clock)
      : logger_(std::move(logger)), clock_(clock) {}

  /// `where`: the address listened at or connected to; `why`: "does not know the pool's secret".
  void Refused(const std::string& where, std::string_view why);
  void Malformed(const std::string& where, std::string_view why);

  void AddTo(TrafficCounters* counters) const;

 private:
  void Tell(const std::string& where, std::string_view what, std::string_view why);

  const std::shared_ptr<Logger> logger_;
  Clock* const clock_;
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> malformed_{0};
  std::atomic<uint64_t> next_line_nanos_{0};
  std::atomic<uint64_t> untold_{0};
};

}  // namespace nacre::rdma
