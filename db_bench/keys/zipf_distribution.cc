#include "db_bench/keys/zipf_distribution.h"

#include <algorithm>
#include <cmath>

namespace nacre::bench {
namespace {

/// Below this the quotients of the next two functions are taken from their series.
constexpr double kTiny = 1e-8;

/// log(1 + x) / x.
double LogRatio(double x) {
  return std::abs(x) > kTiny ? std::log1p(x) / x : 1 - x * (0.5 - x * (1.0 / 3 - 0.25 * x));
}

/// (exp(x) - 1) / x.
double ExpRatio(double x) {
  return std::abs(x) > kTiny ? std::expm1(x) / x : 1 + x * 0.5 * (1 + x / 3 * (1 + 0.25 * x));
}

}  // namespace

ZipfDistribution::ZipfDistribution(uint64_t items, double theta)
    : theta_(theta),
      items_(static_cast<double>(items)),
      first_(Integral(1.5) - 1),
      last_(Integral(items_ + 0.5)),
      squeeze_(2 - InverseIntegral(Integral(2.5) - Density(2))) {}

uint64_t ZipfDistribution::Next(Random* random) const {
  while (true) {
    const double y = last_ + random->NextDouble() * (first_ - last_);
    const double x = InverseIntegral(y);
    const double number = std::clamp(std::floor(x + 0.5), 1.0, items_);
    if (number - x <= squeeze_ || y >= Integral(number + 0.5) - Density(number)) {
      return static_cast<uint64_t>(number) - 1;
    }
  }
}

double ZipfDistribution::Density(double x) const { return std::exp(-theta_ * std::log(x)); }

double ZipfDistribution::Integral(double x) const {
  const double log_x = std::log(x);
  return ExpRatio((1 - theta_) * log_x) * log_x;
}

double ZipfDistribution::InverseIntegral(double y) const {
  // Rounding must not lead beyond the domain of the logarithm.
  const double t = std::max(y * (1 - theta_), -1.0);
  return std::exp(LogRatio(t) * y);
}

}  // namespace nacre::bench
