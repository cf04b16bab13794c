#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "db_bench/config.h"
#include "db_bench/value_sizes.h"
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
      : bytes_(pool->bytes()), sizes_(config), random_(seed) {}

  Slice Next() {
    const size_t size = sizes_.Next(&random_);
    if (position_ + size > bytes_.size()) position_ = 0;
    const Slice value(bytes_.data() + position_, size);
    position_ += size;
    return value;
  }

 private:
  const std::string& bytes_;
  ValueSizes sizes_;
  Random random_;
  size_t position_ = 0;
};

}  // namespace nacre::bench
