#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace nacre::bench {

/// Counts of latencies in nanoseconds, in buckets no wider than 1/128 of their value, as HDR
/// histograms have them: those of util's `Histogram` are half as wide as their value, which is for
/// people to look at, not to compare percentiles with.
/// Thread safety: one thread at a time adds; others may copy and merge from it meanwhile, and get
/// what was added up to some moment of each bucket.
class LatencyCounts {
 public:
  LatencyCounts() : counts_(std::make_unique<Counts>()) {}
  LatencyCounts(const LatencyCounts& other) : LatencyCounts() { Merge(other); }
  LatencyCounts& operator=(const LatencyCounts& other) {
    if (this == &other) return *this;
    for (size_t i = 0; i < kBuckets; ++i) Set(i, other.Get(i));
    count_ = other.count_;
    max_nanos_.store(other.max_nanos(), std::memory_order_relaxed);
    return *this;
  }

  void Add(uint64_t nanos) {
    const size_t bucket = BucketOf(nanos);
    Set(bucket, Get(bucket) + 1);
    ++count_;
    if (nanos > max_nanos()) max_nanos_.store(nanos, std::memory_order_relaxed);
  }
  void Merge(const LatencyCounts& other) {
    for (size_t i = 0; i < kBuckets; ++i) {
      const uint64_t added = other.Get(i);
      Set(i, Get(i) + added);
      count_ += added;
    }
    max_nanos_.store(std::max(max_nanos(), other.max_nanos()), std::memory_order_relaxed);
  }
  /// What was added since this was equal to `earlier`, but for the longest: that of the difference
  /// is the middle of its bucket.
  LatencyCounts Since(const LatencyCounts& earlier) const {
    LatencyCounts difference;
    for (size_t i = 0; i < kBuckets; ++i) {
      difference.Set(i, Get(i) - earlier.Get(i));
      difference.count_ += difference.Get(i);
    }
    difference.max_nanos_.store(static_cast<uint64_t>(difference.PercentileNanos(100)),
                                std::memory_order_relaxed);
    return difference;
  }
  uint64_t count() const { return count_; }
  /// The longest, exactly; 0 if nothing was counted.
  uint64_t max_nanos() const { return max_nanos_.load(std::memory_order_relaxed); }
  /// Calls `visit(nanos, count)` for each bucket that is not empty, with its middle, upwards.
  template <typename Visit>
  void ForEachBucket(const Visit& visit) const {
    for (size_t i = 0; i < kBuckets; ++i) {
      if (const uint64_t count = Get(i); count > 0) visit(MiddleOf(i), count);
    }
  }
  /// `p` in 0..100: the middle of the bucket that holds it; 0 if nothing was counted.
  double PercentileNanos(double p) const {
    if (count_ == 0) return 0;
    const double threshold = std::max(1.0, static_cast<double>(count_) * p / 100);
    uint64_t cumulative = 0;
    size_t bucket = 0;
    for (; bucket + 1 < kBuckets; ++bucket) {
      cumulative += Get(bucket);
      if (static_cast<double>(cumulative) >= threshold) break;
    }
    return MiddleOf(bucket);
  }

  static constexpr int kSubBits = 7;
  static constexpr int kMaxBits = 44;  ///< Up to 4.8 hours.
  static constexpr size_t kPowers = kMaxBits - kSubBits + 1;
  static constexpr size_t kSub = size_t{1} << kSubBits;  ///< Buckets of a power of two.

 private:
  // Below 256 each value has a bucket; above, each power of two is cut into 128.
  static constexpr size_t kBuckets = kPowers * kSub;

  static size_t BucketOf(uint64_t nanos) {
    nanos = std::min(nanos, (uint64_t{1} << kMaxBits) - 1);
    const int shift = std::max(0, static_cast<int>(std::bit_width(nanos)) - kSubBits - 1);
    return static_cast<size_t>(shift) * kSub + static_cast<size_t>(nanos >> shift);
  }
  static double MiddleOf(size_t bucket) {
    if (bucket < 2 * kSub) return static_cast<double>(bucket);
    const size_t shift = bucket / kSub - 1;
    const uint64_t width = uint64_t{1} << shift;
    return static_cast<double>((bucket - shift * kSub) * width) +
           static_cast<double>(width - 1) / 2;
  }

  // Plain loads and stores, no read-modify-write: only one thread adds.
  uint64_t Get(size_t bucket) const { return (*counts_)[bucket].load(std::memory_order_relaxed); }
  void Set(size_t bucket, uint64_t count) {
    (*counts_)[bucket].store(count, std::memory_order_relaxed);
  }

  using Counts = std::array<std::atomic<uint64_t>, kBuckets>;
  std::unique_ptr<Counts> counts_;
  uint64_t count_ = 0;  ///< Belongs to the thread that adds.
  std::atomic<uint64_t> max_nanos_{0};
};

}  // namespace nacre::bench
