#include "transactions/bucket_locks.h"

#include <algorithm>
#include <utility>

#include "table/format/write_batch_format.h"
#include "util/hash.h"

namespace nacre {

BucketLocks::BucketLocks(uint32_t buckets)
    : count_(std::max(buckets, 1U)), buckets_(std::make_unique<Mutex[]>(count_)) {}

uint32_t BucketLocks::BucketOf(uint32_t family, const Slice& key) const {
  constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;
  return static_cast<uint32_t>((Hash64(key) + family * kSpread) % count_);
}

Status BucketLocks::AddBuckets(const WriteBatch& batch, std::vector<uint32_t>* buckets) const {
  bool ranges = false;
  NACRE_RETURN_IF_ERROR(ForEachUpdate(
      batch.Data(), [&](ValueType type, uint32_t family, const Slice& key, const Slice&) {
        ranges |= type == ValueType::kRangeDeletion;
        buckets->push_back(BucketOf(family, key));
      }));
  return ranges ? Status::NotSupported("DeleteRange in an OptimisticTransactionDB") : Status::OK();
}

// Which mutexes it is only shows when it runs.
BucketLocks::Holder::Holder(BucketLocks* locks,
                            std::vector<uint32_t> buckets) NO_THREAD_SAFETY_ANALYSIS
    : locks_(locks),
      buckets_(std::move(buckets)) {
  std::sort(buckets_.begin(), buckets_.end());
  buckets_.erase(std::unique(buckets_.begin(), buckets_.end()), buckets_.end());
  for (const uint32_t bucket : buckets_) locks_->buckets_[bucket].Lock();
}

BucketLocks::Holder::~Holder() NO_THREAD_SAFETY_ANALYSIS {
  for (const uint32_t bucket : buckets_) locks_->buckets_[bucket].Unlock();
}

}  // namespace nacre
