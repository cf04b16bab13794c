#include "db_bench/open_loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace nacre::bench {
namespace {

/// A sleep may take so much longer than it was asked to; the rest of a wait is spent yielding.
constexpr uint64_t kOversleepNanos = 150'000;
/// The longest sleep between looks at what ends the run.
constexpr uint64_t kSleepNanosMax = 20'000'000;

}  // namespace

ArrivalTimes::ArrivalTimes(const BenchConfig& config, uint64_t seed)
    : arrivals_(config.arrivals),
      gap_nanos_(1e9 * config.threads / config.target_ops_per_second),
      random_(seed) {}

double ArrivalTimes::Next(uint64_t ops) {
  const double start = next_nanos_;
  for (uint64_t i = 0; i < ops; ++i) {
    next_nanos_ += arrivals_ == Arrivals::kConstant
                       ? gap_nanos_
                       : -std::log1p(-random_.NextDouble()) * gap_nanos_;
  }
  return start;
}

void OpenLoop::Await(uint64_t ops) {
  if (start_ == 0) start_ = cycles_->Now();
  const uint64_t intended = start_ + cycles_->ToTicks(times_.Next(ops));
  uint64_t now = cycles_->Now();
  while (now < intended && !stop_->load(std::memory_order_relaxed)) {
    const uint64_t left = cycles_->ToNanos(intended - now);
    if (left > kOversleepNanos) {
      clock_->SleepFor(std::chrono::nanoseconds(std::min(left - kOversleepNanos, kSleepNanosMax)));
    } else {
      std::this_thread::yield();
    }
    now = cycles_->Now();
  }
  recorder_->StartAt(intended);
}

}  // namespace nacre::bench
