#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "db_bench/config.h"
#include "nacre/slice.h"
#include "util/random.h"

namespace nacre::bench {

/// Bytes that values are cut from, made once for all threads: pieces of 100 bytes that a
/// compressor shrinks to `compression_ratio`, as in RocksDB's db_bench.
/// Thread safety: read-only.
class ValuePool {
 public:
  explicit ValuePool(const BenchConfig& config);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// The values that one thread writes.
/// Thread safety: none; one per thread.
class ValueGenerator {
 public:
  /// `pool` must outlive this.
  ValueGenerator(const BenchConfig& config, const ValuePool* pool, uint64_t seed)
      : bytes_(pool->bytes()),
        size_min_(config.value_size_min),
        size_max_(config.value_size_max),
        sizes_(seed) {}

  Slice Next() {
    const size_t size =
        size_min_ == size_max_ ? size_max_ : size_min_ + sizes_.Uniform(size_max_ - size_min_ + 1);
    if (position_ + size > bytes_.size()) position_ = 0;
    const Slice value(bytes_.data() + position_, size);
    position_ += size;
    return value;
  }

 private:
  const std::string& bytes_;
  size_t size_min_;
  size_t size_max_;
  Random sizes_;
  size_t position_ = 0;
};

}  // namespace nacre::bench
