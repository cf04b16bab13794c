#pragma once

#include <cstdint>
#include <memory>

namespace rocksdb {
class RateLimiter;
}

namespace nacre::bench {

/// The writes of all threads together, at most so many bytes per second. RocksDB's own limiter, as
/// in its db_bench.
/// Thread safety: all methods may be called from many threads at once.
class WriteRateLimiter {
 public:
  /// 0 is no limit.
  explicit WriteRateLimiter(uint64_t bytes_per_second);
  ~WriteRateLimiter();

  /// Waits until `bytes` may be written.
  void Request(uint64_t bytes) {
    if (limiter_ != nullptr) Wait(bytes);
  }

 private:
  void Wait(uint64_t bytes);

  std::unique_ptr<rocksdb::RateLimiter> limiter_;
};

}  // namespace nacre::bench
