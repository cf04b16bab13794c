#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"
#include "util/mutex.h"

namespace nacre {

/// Mutexes among which all keys of a database are divided by their hashes, so that writers of one
/// key exclude one another. A thread takes all that it needs at once, in ascending order, so they
/// cannot wait for one another in a circle. Thread safety: all methods may be called from many
/// threads at once.
class BucketLocks {
 public:
  explicit BucketLocks(uint32_t buckets);

  uint32_t BucketOf(uint32_t family, const Slice& key) const;
  /// Adds those of all keys that the batch writes. `NotSupported` for ranges of keys, `Corruption`
  /// if it is malformed.
  Status AddBuckets(const WriteBatch& batch, std::vector<uint32_t>* buckets) const;

  /// Holds buckets for a scope.
  class Holder {
   public:
    /// The buckets may come in any order and more than once.
    Holder(BucketLocks* locks, std::vector<uint32_t> buckets);
    ~Holder();
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

   private:
    BucketLocks* const locks_;
    std::vector<uint32_t> buckets_;
  };

 private:
  const uint32_t count_;
  const std::unique_ptr<Mutex[]> buckets_;
};

}  // namespace nacre
