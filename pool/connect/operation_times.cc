#include "pool/connect/operation_times.h"

#include <cmath>

namespace nacre::pool {

uint64_t OperationTimes::count() const {
  uint64_t sum = 0;
  for (const auto& each : counts_) sum += each.load(std::memory_order_relaxed);
  return sum;
}

std::chrono::nanoseconds OperationTimes::EndOf(size_t step) {
  const uint64_t end = step + 1;
  if (end <= (uint64_t{1} << kStepBits)) return std::chrono::microseconds(end);
  const uint64_t power = (end >> kStepBits) - 1;
  const uint64_t within = end & ((uint64_t{1} << kStepBits) - 1);
  return std::chrono::microseconds(((uint64_t{1} << kStepBits) + within) << power);
}

std::chrono::nanoseconds OperationTimes::Within(double share) const {
  std::array<uint32_t, kSteps> counts;
  uint64_t sum = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    counts[i] = counts_[i].load(std::memory_order_relaxed);
    sum += counts[i];
  }
  if (sum == 0) return std::chrono::nanoseconds(0);
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(sum)));
  uint64_t so_far = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    so_far += counts[i];
    if (so_far >= wanted && so_far > 0) return EndOf(i);
  }
  return EndOf(kSteps - 1);
}

void OperationTimes::Age() {
  for (auto& each : counts_) {
    uint32_t count = each.load(std::memory_order_relaxed);
    // Several threads may do this at once, and others add meanwhile.
    while (count > 0 && !each.compare_exchange_weak(count, count / 2, std::memory_order_relaxed)) {
    }
  }
}

}  // namespace nacre::pool
