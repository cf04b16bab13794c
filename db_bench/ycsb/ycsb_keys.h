#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "db_bench/keys/zipf_distribution.h"
#include "util/mutex.h"
#include "util/random.h"

// Records and how they are chosen, as YCSB's CoreWorkload does it (insertorder=hashed). A record
// has a number; its key has the hash of it, so that records which are inserted one after the other
// do not lie beside one another.

namespace nacre::bench {

inline constexpr double kYcsbTheta = 0.99;

/// YCSB's Utils.hash: FNV-1a over the eight bytes, from the lowest on, without the sign.
uint64_t YcsbHash(uint64_t number);

/// The records that there are, from 0 on.
///
/// Thread safety: all methods may be called from many threads at once.
class YcsbRecords {
 public:
  explicit YcsbRecords(uint64_t count) : next_(count), count_(count) {}

  /// Starts anew; requires that no other method runs.
  void Reset(uint64_t count);
  /// The number of a new record.
  uint64_t Begin() { return next_.fetch_add(1, std::memory_order_relaxed); }
  /// The new record can be read.
  void End(uint64_t record);
  /// All below this can be read.
  uint64_t count() const { return count_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> next_;
  /// Pairs with the store of End.
  std::atomic<uint64_t> count_;
  Mutex mutex_;
  /// Inserted, while a record before them is not yet.
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> early_ GUARDED_BY(mutex_);
};

/// ScrambledZipfianGenerator: a rank among 10^10 with theta 0.99, whose hash modulo the number of
/// items is the record. So the hottest record takes the same share of operations however many there
/// are.
///
/// Thread safety: const methods may be called from many threads at once.
class YcsbZipfian {
 public:
  YcsbZipfian();
  uint64_t Next(Random* random, uint64_t items) const {
    return YcsbHash(ranks_.Next(random)) % items;
  }

 private:
  const ZipfDistribution ranks_;
};

/// SkewedLatestGenerator: how far a record is from the newest one has a Zipf distribution of theta
/// 0.99 over all that there are.
///
/// Thread safety: none; one per thread.
class YcsbLatest {
 public:
  uint64_t Next(Random* random, uint64_t items);

 private:
  uint64_t items_ = 1;
  ZipfDistribution ranks_{1, kYcsbTheta};
};

}  // namespace nacre::bench
