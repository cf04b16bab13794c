#pragma once

#include <cstdint>

#include "util/random.h"

namespace nacre::bench {

/// Ranks whose probability is proportional to 1 / (rank + 1)^theta, exactly, by rejection-inversion
/// (Hoermann and Derflinger, 1996): no table, and 10 to 23 ns a rank.
///
/// Thread safety: const methods may be called from many threads at once.
class ZipfDistribution {
 public:
  /// Ranks below `items`, which is positive and below 2^53; `theta` > 0.
  ZipfDistribution(uint64_t items, double theta);

  uint64_t Next(Random* random) const;

 private:
  /// 1 / x^theta.
  double Density(double x) const;
  /// An antiderivative of the density.
  double Integral(double x) const;
  double InverseIntegral(double y) const;

  double theta_;
  double items_;
  double first_;  ///< Where the integral is to begin, so that rank 0 gets its share.
  double last_;
  double squeeze_;  ///< What is nearer than this to its rank needs no second look.
};

}  // namespace nacre::bench
