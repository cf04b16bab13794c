#include "db_bench/value_generator.h"

#include <algorithm>

namespace nacre::bench {
namespace {

constexpr uint64_t kPoolSeed = 301;
constexpr size_t kPieceSize = 100;
constexpr size_t kPoolSize = 1 << 20;

}  // namespace

ValuePool::ValuePool(const BenchConfig& config) {
  Random random(kPoolSeed);
  const size_t size = std::max(kPoolSize, config.value_size_max);
  const auto fresh = std::clamp<size_t>(
      static_cast<size_t>(static_cast<double>(kPieceSize) * config.compression_ratio), 1,
      kPieceSize);
  bytes_.reserve(size + kPieceSize);
  while (bytes_.size() < size) {
    const size_t piece = bytes_.size();
    for (size_t i = 0; i < fresh; ++i) {
      bytes_.push_back(static_cast<char>(' ' + random.Uniform(95)));
    }
    for (size_t i = fresh; i < kPieceSize; ++i) bytes_.push_back(bytes_[piece + i - fresh]);
  }
}

}  // namespace nacre::bench
