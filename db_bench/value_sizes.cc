#include "db_bench/value_sizes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace nacre::bench {

size_t ValueSizes::Draw(Random* random) const {
  const auto min = static_cast<double>(min_);
  const auto max = static_cast<double>(max_);
  double size = max;
  switch (distribution_) {
    case ValueSizeDistribution::kFixed:
      break;
    case ValueSizeDistribution::kUniform:
      return min_ + random->Uniform(max_ - min_ + 1);
    case ValueSizeDistribution::kNormal: {
      // Box and Muller. Six standard deviations lie between the ends.
      const double radius = std::sqrt(-2 * std::log1p(-random->NextDouble()));
      const double normal = radius * std::cos(2 * std::numbers::pi * random->NextDouble());
      size = std::round((min + max) / 2 + normal * (max - min) / 6);
      break;
    }
    case ValueSizeDistribution::kPareto: {
      const double log_tail = std::log1p(-random->NextDouble());
      size = min + (k_ == 0 ? -sigma_ * log_tail : sigma_ * std::expm1(-k_ * log_tail) / k_);
      break;
    }
  }
  return static_cast<size_t>(std::clamp(size, min, max));
}

double ValueSizes::Mean() const {
  const auto min = static_cast<double>(min_);
  const auto max = static_cast<double>(max_);
  return distribution_ == ValueSizeDistribution::kPareto ? std::min(min + sigma_ / (1 - k_), max)
                                                         : (min + max) / 2;
}

}  // namespace nacre::bench
