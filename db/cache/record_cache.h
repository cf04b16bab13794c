#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "db/cache/record_ring.h"
#include "nacre/slice.h"
#include "nacre/statistics.h"
#include "util/per_thread.h"

namespace nacre {

/// Hot records of tables whose memory this process cannot load: a hit spares the one-sided read.
/// Indexes still say which record it is, and the lookup still checks it, so a hit answers what the
/// read would have: snapshots, deletions and compactions need no care. Records of tables that are
/// gone are asked for no more, and leave like all others that are not.
///
/// Admission is S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP
/// 2023): a new record goes through a small ring, and to the main one if it was used there twice,
/// or comes back soon after it was let go. What a scan touches once never reaches the main ring.
///
/// Thread safety: all methods may be called from many threads at once. Find takes no lock, and
/// writes to shared memory only for what was used less than three times; Admit takes the lock of
/// one shard.
class RecordCache {
 public:
  static constexpr size_t kMinBytes = 64 << 10;

  struct Counts {
    uint64_t hits = 0;
    uint64_t misses = 0;
  };

  /// Null if `bytes` is 0.
  static std::unique_ptr<RecordCache> Make(size_t bytes, Statistics* statistics) {
    return bytes == 0 ? nullptr : std::make_unique<RecordCache>(bytes, statistics);
  }
  /// Takes at most `bytes` (at least kMinBytes) of memory, tables and heads of entries included, as
  /// it fills. `statistics`, which may be null, counts as well; it outlives the cache.
  RecordCache(size_t bytes, Statistics* statistics);
  ~RecordCache();
  RecordCache(const RecordCache&) = delete;
  RecordCache& operator=(const RecordCache&) = delete;

  /// Copies the record to `*buffer`, which `*record` then views. False: it is not here.
  bool Find(const RecordName& name, std::unique_ptr<char[]>* buffer, Slice* record);
  /// Takes a copy of a record whose checksum was verified, unless it is too long: each must leave
  /// room for others.
  void Admit(const RecordName& name, const Slice& record);

  size_t capacity() const { return capacity_; }
  /// Bytes of its tables and of the entries.
  size_t used() const;
  Counts counts() const;

 private:
  class Shard;
  struct ThreadCounts {
    std::atomic<uint64_t> hits;
    std::atomic<uint64_t> misses;
  };

  static uint64_t HashOf(const RecordName& name);
  Shard& ShardOf(uint64_t hash) { return *shards_[hash >> 56 & (shards_.size() - 1)]; }
  void Count(bool hit);

  const size_t capacity_;
  Statistics* const statistics_;
  char* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  std::vector<std::unique_ptr<Shard>> shards_;
  PerThread<ThreadCounts> counts_;
};

}  // namespace nacre
