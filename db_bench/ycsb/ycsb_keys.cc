#include "db_bench/ycsb/ycsb_keys.h"

namespace nacre::bench {
namespace {

constexpr uint64_t kZipfianItems = 10'000'000'000;

}  // namespace

uint64_t YcsbHash(uint64_t number) {
  constexpr uint64_t kOffsetBasis = 0xcbf29ce484222325;
  constexpr uint64_t kPrime = 1099511628211;
  uint64_t hash = kOffsetBasis;
  for (int i = 0; i < 8; ++i) {
    hash = (hash ^ (number & 0xff)) * kPrime;
    number >>= 8;
  }
  return static_cast<int64_t>(hash) < 0 ? 0 - hash : hash;
}

void YcsbRecords::Reset(uint64_t count) {
  next_.store(count, std::memory_order_relaxed);
  count_.store(count, std::memory_order_release);
}

void YcsbRecords::End(uint64_t record) {
  MutexLock lock(&mutex_);
  early_.push(record);
  uint64_t count = count_.load(std::memory_order_relaxed);
  for (; !early_.empty() && early_.top() == count; ++count) early_.pop();
  count_.store(count, std::memory_order_release);
}

YcsbZipfian::YcsbZipfian() : ranks_(kZipfianItems, kYcsbTheta) {}

uint64_t YcsbLatest::Next(Random* random, uint64_t items) {
  if (items != items_) {
    items_ = items;
    ranks_ = ZipfDistribution(items, kYcsbTheta);
  }
  return items - 1 - ranks_.Next(random);
}

}  // namespace nacre::bench
