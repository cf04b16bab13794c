#pragma once

#include <cstddef>

#include "db_bench/config.h"
#include "util/random.h"

namespace nacre::bench {

/// Draws the sizes of values, between --value_size_min and --value_size_max.
///
/// Thread safety: const methods may be called from many threads at once.
class ValueSizes {
 public:
  explicit ValueSizes(const BenchConfig& config)
      : distribution_(config.value_size_distribution),
        min_(config.value_size_min),
        max_(config.value_size_max),
        k_(config.value_k),
        sigma_(config.value_sigma) {}

  size_t Next(Random* random) const {
    return distribution_ == ValueSizeDistribution::kFixed ? max_ : Draw(random);
  }
  /// What sizes are on average; for those that are cut off at an end, what they would be.
  double Mean() const;

 private:
  size_t Draw(Random* random) const;

  const ValueSizeDistribution distribution_;
  const size_t min_;
  const size_t max_;
  const double k_;
  const double sigma_;
};

}  // namespace nacre::bench
