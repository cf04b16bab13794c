#include "util/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstdio>

namespace nacre {
namespace {

/// The buckets of RocksDB, so that reports of both can be laid side by side: upper limits grow by
/// half each and are cut to two significant digits.
class BucketMap {
 public:
  constexpr BucketMap() {
    limits_[count_++] = 1;
    limits_[count_++] = 2;
    double exact = 2;
    while ((exact *= 1.5) <= 18446744073709551615.0) {
      auto limit = static_cast<uint64_t>(exact);
      // RocksDB goes on from the uncut value, so the cuts do not add up.
      uint64_t power_of_ten = 1;
      while (limit / 10 > 10) {
        limit /= 10;
        power_of_ten *= 10;
      }
      limits_[count_++] = limit * power_of_ten;
    }
    for (size_t bits = 0; bits < first_.size(); ++bits) {
      const uint64_t smallest = bits == 0 ? 0 : uint64_t{1} << (bits - 1);
      size_t bucket = 0;
      while (limits_[bucket] < smallest && bucket + 1 < count_) ++bucket;
      first_[bits] = static_cast<uint8_t>(bucket);
    }
  }

  /// The first bucket whose limit is >= value; the last one takes what is beyond. The number of
  /// significant bits leads to within three steps of it.
  size_t IndexOf(uint64_t value) const {
    size_t index = first_[static_cast<size_t>(std::bit_width(value))];
    while (limits_[index] < value && index + 1 < count_) ++index;
    return index;
  }
  uint64_t Limit(size_t bucket) const { return limits_[bucket]; }
  size_t count() const { return count_; }

 private:
  std::array<uint64_t, Histogram::kMaxBuckets> limits_ = {};
  std::array<uint8_t, 65> first_ = {};
  size_t count_ = 0;
};

constexpr BucketMap kBuckets;

template <typename... Args>
void AppendFormat(std::string* dst, const char* format, Args... args) {
  char line[512];
  const int n = std::snprintf(line, sizeof(line), format, args...);
  if (n > 0) dst->append(line, std::min(static_cast<size_t>(n), sizeof(line) - 1));
}

}  // namespace

Histogram::Histogram() : buckets_(kBuckets.count()) {}

void Histogram::Clear() { *this = Histogram(); }

void Histogram::Add(uint64_t value) {
  ++buckets_[kBuckets.IndexOf(value)];
  ++count_;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  const auto wide = static_cast<double>(value);
  sum_ += wide;
  sum_squares_ += wide * wide;
}

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  sum_squares_ += other.sum_squares_;
}

size_t Histogram::BucketOf(uint64_t value) { return kBuckets.IndexOf(value); }

uint64_t Histogram::LimitOf(size_t bucket) {
  return bucket + 1 < kBuckets.count() ? kBuckets.Limit(bucket) : UINT64_MAX;
}

void Histogram::MergeCounts(std::span<const uint64_t> buckets, uint64_t min, uint64_t max,
                            double sum, double sum_squares) {
  for (size_t i = 0; i < std::min(buckets.size(), buckets_.size()); ++i) {
    buckets_[i] += buckets[i];
    count_ += buckets[i];
  }
  min_ = std::min(min_, min);
  max_ = std::max(max_, max);
  sum_ += sum;
  sum_squares_ += sum_squares;
}

uint64_t Histogram::min() const { return count_ == 0 ? 0 : min_; }

double Histogram::Average() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

double Histogram::StandardDeviation() const {
  if (count_ == 0) return 0;
  const auto n = static_cast<double>(count_);
  // Rounding may bring the difference below zero.
  return std::sqrt(std::max(0.0, (sum_squares_ * n - sum_ * sum_) / (n * n)));
}

double Histogram::Percentile(double p) const {
  const double threshold = static_cast<double>(count_) * (p / 100.0);
  uint64_t cumulative = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const uint64_t in_bucket = buckets_[i];
    cumulative += in_bucket;
    if (static_cast<double>(cumulative) < threshold) continue;
    const double left = i == 0 ? 0 : static_cast<double>(kBuckets.Limit(i - 1));
    const auto right = static_cast<double>(kBuckets.Limit(i));
    const double before = static_cast<double>(cumulative - in_bucket);
    const double position =
        in_bucket == 0 ? 0 : (threshold - before) / static_cast<double>(in_bucket);
    return std::clamp(left + (right - left) * position, static_cast<double>(min()),
                      static_cast<double>(max_));
  }
  return static_cast<double>(max_);
}

std::string Histogram::ToString() const {
  std::string result;
  AppendFormat(&result, "Count: %" PRIu64 " Average: %.4f  StdDev: %.2f\n", count_, Average(),
               StandardDeviation());
  AppendFormat(&result, "Min: %" PRIu64 "  Median: %.4f  Max: %" PRIu64 "\n", min(), Median(),
               max());
  AppendFormat(&result, "Percentiles: P50: %.2f P75: %.2f P99: %.2f P99.9: %.2f P99.99: %.2f\n",
               Percentile(50), Percentile(75), Percentile(99), Percentile(99.9), Percentile(99.99));
  result.append("------------------------------------------------------\n");
  if (count_ == 0) return result;
  const double to_percent = 100.0 / static_cast<double>(count_);
  uint64_t cumulative = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] == 0) continue;
    cumulative += buckets_[i];
    const double percent = to_percent * static_cast<double>(buckets_[i]);
    AppendFormat(&result, "%c %7" PRIu64 ", %7" PRIu64 " ] %8" PRIu64 " %7.3f%% %7.3f%% ",
                 i == 0 ? '[' : '(', i == 0 ? 0 : kBuckets.Limit(i - 1), kBuckets.Limit(i),
                 buckets_[i], percent, to_percent * static_cast<double>(cumulative));
    result.append(static_cast<size_t>(std::lround(percent / 5)), '#').push_back('\n');
  }
  return result;
}

}  // namespace nacre
