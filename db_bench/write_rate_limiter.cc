#include "db_bench/write_rate_limiter.h"

#include <rocksdb/env.h>
#include <rocksdb/rate_limiter.h>

#include <algorithm>

namespace nacre::bench {

WriteRateLimiter::WriteRateLimiter(uint64_t bytes_per_second)
    : limiter_(bytes_per_second == 0
                   ? nullptr
                   : rocksdb::NewGenericRateLimiter(static_cast<int64_t>(bytes_per_second))) {}

WriteRateLimiter::~WriteRateLimiter() = default;

void WriteRateLimiter::Wait(uint64_t bytes) {
  // The limiter takes no request larger than what it refills at once.
  const auto burst = static_cast<uint64_t>(std::max<int64_t>(limiter_->GetSingleBurstBytes(), 1));
  while (bytes > 0) {
    const uint64_t part = std::min(bytes, burst);
    limiter_->Request(static_cast<int64_t>(part), rocksdb::Env::IO_HIGH, nullptr,
                      rocksdb::RateLimiter::OpType::kWrite);
    bytes -= part;
  }
}

}  // namespace nacre::bench
