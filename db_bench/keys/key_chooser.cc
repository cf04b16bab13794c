#include "db_bench/keys/key_chooser.h"

#include <algorithm>

namespace nacre::bench {
namespace {

/// A prime near 2^64 divided by the golden ratio. Multiples of it modulo any smaller number come by
/// every remainder once, and neighbours land far from one another.
constexpr uint64_t kStride = 11400714819323198549U;

}  // namespace

KeyChooser::KeyChooser(const BenchConfig& config)
    : distribution_(config.key_dist),
      num_(config.num),
      zipf_(config.num, config.zipf_theta),
      stride_(kStride % config.num),
      hot_keys_(std::clamp<uint64_t>(
          static_cast<uint64_t>(static_cast<double>(config.num) * config.hotspot_set_fraction), 1,
          config.num)),
      hot_fraction_(config.hotspot_op_fraction) {}

uint64_t KeyChooser::NextSkewed(Random* random) const {
  switch (distribution_) {
    case KeyDistribution::kUniform:
      break;
    case KeyDistribution::kZipf:
      return static_cast<uint64_t>(static_cast<unsigned __int128>(zipf_.Next(random)) * stride_ %
                                   num_);
    case KeyDistribution::kLatest:
      return num_ - 1 - zipf_.Next(random);
    case KeyDistribution::kHotspot:
      if (hot_keys_ == num_ || random->NextDouble() < hot_fraction_) {
        return random->Uniform(hot_keys_);
      }
      return hot_keys_ + random->Uniform(num_ - hot_keys_);
  }
  return random->Uniform(num_);
}

}  // namespace nacre::bench
