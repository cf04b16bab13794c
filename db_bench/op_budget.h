#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "db_bench/open_loop.h"
#include "util/clock.h"

namespace nacre::bench {

/// How long one thread goes on: for a number of operations, or for a time.
/// Thread safety: none; one per thread.
class OpBudget {
 public:
  /// `seconds` = 0 means until `max_ops` are done; else the time decides alone, and the clock is
  /// read every `ops_between_checks` operations. `*stop` ends it early. With `open_loop` operations
  /// start when that says so, and the clock is read before each. Nothing is owned.
  OpBudget(Clock* clock, const std::atomic<bool>* stop, uint64_t max_ops, int seconds,
           uint64_t ops_between_checks, OpenLoop* open_loop = nullptr)
      : clock_(clock),
        stop_(stop),
        open_loop_(open_loop),
        ops_between_checks_(open_loop == nullptr ? ops_between_checks : 0),
        ops_left_(seconds > 0 ? ops_between_checks_ : max_ops),
        end_nanos_(seconds > 0 ? clock->NowNanos() + static_cast<uint64_t>(seconds) * 1'000'000'000
                               : 0) {}

  /// How many of `wanted` operations may be done now; 0 at the end. Waits for their start.
  uint64_t Take(uint64_t wanted = 1) {
    if (open_loop_ != nullptr && (ops_left_ > 0 || end_nanos_ > 0)) [[unlikely]]
      open_loop_->Await(wanted);
    if (ops_left_ < wanted) [[unlikely]]
      return TakeRest(wanted);
    ops_left_ -= wanted;
    return stop_->load(std::memory_order_relaxed) ? 0 : wanted;
  }

 private:
  uint64_t TakeRest(uint64_t wanted) {
    if (stop_->load(std::memory_order_relaxed)) return 0;
    if (end_nanos_ == 0) {
      const uint64_t rest = std::min(wanted, ops_left_);
      ops_left_ -= rest;
      return rest;
    }
    if (clock_->NowNanos() >= end_nanos_) return 0;
    ops_left_ = std::max(ops_between_checks_, wanted) - wanted;
    return wanted;
  }

  Clock* clock_;
  const std::atomic<bool>* stop_;
  OpenLoop* open_loop_;
  uint64_t ops_between_checks_;
  uint64_t ops_left_;
  uint64_t end_nanos_;
};

}  // namespace nacre::bench
