#pragma once

#include <cstdint>

#include "db_bench/config.h"
#include "db_bench/keys/zipf_distribution.h"
#include "util/random.h"

namespace nacre::bench {

/// Draws numbers of keys below --num as --key_dist says.
///
/// Thread safety: const methods may be called from many threads at once.
class KeyChooser {
 public:
  explicit KeyChooser(const BenchConfig& config);

  uint64_t Next(Random* random) const {
    return distribution_ == KeyDistribution::kUniform ? random->Uniform(num_) : NextSkewed(random);
  }

 private:
  uint64_t NextSkewed(Random* random) const;

  const KeyDistribution distribution_;
  const uint64_t num_;
  const ZipfDistribution zipf_;
  const uint64_t stride_;
  const uint64_t hot_keys_;
  const double hot_fraction_;
};

}  // namespace nacre::bench
