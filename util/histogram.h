#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nacre {

/// Counts of values in geometric buckets, reported as RocksDB's db_bench does.
/// Thread safety: none; one per thread, then Merge.
class Histogram {
 public:
  Histogram();
  void Clear();
  void Add(uint64_t value);
  void Merge(const Histogram& other);

  /// Serves callers that count by themselves: no value's bucket is beyond this.
  static constexpr size_t kMaxBuckets = 128;
  static size_t BucketOf(uint64_t value);
  /// The largest value of a bucket below kMaxBuckets; UINT64_MAX if it takes all that is beyond.
  static uint64_t LimitOf(size_t bucket);
  /// Adds values that were counted: how many are in each bucket (`kMaxBuckets` or fewer), their
  /// smallest and largest, their sum and that of their squares.
  void MergeCounts(std::span<const uint64_t> buckets, uint64_t min, uint64_t max, double sum,
                   double sum_squares);

  /// How many values are in each.
  std::span<const uint64_t> buckets() const { return buckets_; }
  uint64_t count() const { return count_; }
  uint64_t min() const;
  uint64_t max() const { return max_; }
  double sum() const { return sum_; }
  double Average() const;
  double StandardDeviation() const;
  double Median() const { return Percentile(50); }
  /// `p` in 0..100, interpolated inside a bucket.
  double Percentile(double p) const;
  /// RocksDB's layout: "Count: ... Average: ...", "Min: ... Median: ...", "Percentiles: P50: ...",
  /// then a line per non-empty bucket.
  std::string ToString() const;

 private:
  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
  double sum_ = 0;
  double sum_squares_ = 0;
};

}  // namespace nacre
