#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "util/clock.h"

namespace nacre {

/// How long each step of opening a database took, for the property "nacre.open.timeline".
/// Thread safety: none.
class OpenTimeline {
 public:
  /// The first step begins. `clock` outlives this.
  explicit OpenTimeline(Clock* clock)
      : clock_(clock), start_nanos_(clock->NowNanos()), last_nanos_(start_nanos_) {}

  /// The step that has just ended; the next one begins. `name`: without blanks, lives for ever.
  void EndStep(const char* name) {
    const uint64_t now = clock_->NowNanos();
    steps_.emplace_back(name, now - last_nanos_);
    last_nanos_ = now;
  }
  /// From the beginning of the first step to the end of the last.
  uint64_t TotalMicros() const { return (last_nanos_ - start_nanos_) / kNanosPerMicro; }
  /// A line for each step, "NAME MICROSECONDS", in order, and at last "total".
  std::string ToString() const {
    std::string text;
    for (const auto& [name, nanos] : steps_) {
      text.append(name).append(" ").append(std::to_string(nanos / kNanosPerMicro)).append("\n");
    }
    return text.append("total ").append(std::to_string(TotalMicros())).append("\n");
  }

 private:
  static constexpr uint64_t kNanosPerMicro = 1000;

  Clock* clock_;
  uint64_t start_nanos_;
  uint64_t last_nanos_;
  std::vector<std::pair<const char*, uint64_t>> steps_;
};

}  // namespace nacre
