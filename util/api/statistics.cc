#include "nacre/statistics.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cinttypes>
#include <cstdio>

#include "util/bucketed_statistics.h"
#include "util/histogram.h"
#include "util/mutex.h"
#include "util/never_destroyed.h"
#include "util/per_thread.h"

namespace nacre {

namespace {

using TickerNames = std::vector<std::pair<Tickers, std::string>>;
using HistogramNames = std::vector<std::pair<Histograms, std::string>>;

const NeverDestroyed<TickerNames> kTickerNames(TickerNames{
    {NUMBER_KEYS_WRITTEN, "rocksdb.number.keys.written"},
    {NUMBER_KEYS_READ, "rocksdb.number.keys.read"},
    {BYTES_WRITTEN, "rocksdb.bytes.written"},
    {BYTES_READ, "rocksdb.bytes.read"},
    {NUMBER_DB_SEEK, "rocksdb.number.db.seek"},
    {NUMBER_DB_NEXT, "rocksdb.number.db.next"},
    {NUMBER_DB_PREV, "rocksdb.number.db.prev"},
    {NUMBER_DB_SEEK_FOUND, "rocksdb.number.db.seek.found"},
    {NUMBER_DB_NEXT_FOUND, "rocksdb.number.db.next.found"},
    {NUMBER_DB_PREV_FOUND, "rocksdb.number.db.prev.found"},
    {ITER_BYTES_READ, "rocksdb.db.iter.bytes.read"},
    {STALL_MICROS, "rocksdb.stall.micros"},
    {NUMBER_MULTIGET_CALLS, "rocksdb.number.multiget.get"},
    {NUMBER_MULTIGET_KEYS_READ, "rocksdb.number.multiget.keys.read"},
    {NUMBER_MULTIGET_BYTES_READ, "rocksdb.number.multiget.bytes.read"},
    {NUMBER_MULTIGET_KEYS_FOUND, "rocksdb.number.multiget.keys.found"},
    {WAL_FILE_SYNCED, "rocksdb.wal.synced"},
    {WAL_FILE_BYTES, "rocksdb.wal.bytes"},
    {WRITE_WITH_WAL, "rocksdb.write.wal"},
    {COMPACT_READ_BYTES, "rocksdb.compact.read.bytes"},
    {COMPACT_WRITE_BYTES, "rocksdb.compact.write.bytes"},
    {FLUSH_WRITE_BYTES, "rocksdb.flush.write.bytes"},
    {NO_ITERATOR_CREATED, "rocksdb.num.iterator.created"},
    {NO_ITERATOR_DELETED, "rocksdb.num.iterator.deleted"},
    {ROW_CACHE_HIT, "rocksdb.row.cache.hit"},
    {ROW_CACHE_MISS, "rocksdb.row.cache.miss"},
});

const NeverDestroyed<HistogramNames> kHistogramNames(HistogramNames{
    {DB_GET, "rocksdb.db.get.micros"},
    {DB_WRITE, "rocksdb.db.write.micros"},
    {COMPACTION_TIME, "rocksdb.compaction.times.micros"},
    {COMPACTION_CPU_TIME, "rocksdb.compaction.times.cpu_micros"},
    {WAL_FILE_SYNC_MICROS, "rocksdb.wal.file.sync.micros"},
    {DB_MULTIGET, "rocksdb.db.multiget.micros"},
    {NUM_FILES_IN_SINGLE_COMPACTION, "rocksdb.numfiles.in.singlecompaction"},
    {DB_SEEK, "rocksdb.db.seek.micros"},
    {WRITE_STALL, "rocksdb.db.write.stall"},
    {BYTES_PER_READ, "rocksdb.bytes.per.read"},
    {BYTES_PER_WRITE, "rocksdb.bytes.per.write"},
    {BYTES_PER_MULTIGET, "rocksdb.bytes.per.multiget"},
    {FLUSH_TIME, "rocksdb.db.flush.micros"},
});

}  // namespace

const TickerNames& TickersNameMap = *kTickerNames;
const HistogramNames& HistogramsNameMap = *kHistogramNames;

namespace {

/// Adds to a number that only one thread changes: no read-modify-write is needed.
template <typename T>
void Add(std::atomic<T>* number, T amount) {
  number->store(number->load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

/// What one thread has counted; all zero at first.
struct HistogramCounts {
  /// Counts of an earlier one were before a reset. Its writer clears, then takes the new one.
  std::atomic<uint64_t> generation;
  std::atomic<uint64_t> inverse_min;  ///< ~0 less the smallest.
  std::atomic<uint64_t> max;
  std::atomic<double> sum;
  std::atomic<double> sum_squares;
  std::array<std::atomic<uint64_t>, Histogram::kMaxBuckets> buckets;

  void Clear(uint64_t new_generation) {
    inverse_min.store(0, std::memory_order_relaxed);
    max.store(0, std::memory_order_relaxed);
    sum.store(0, std::memory_order_relaxed);
    sum_squares.store(0, std::memory_order_relaxed);
    for (auto& bucket : buckets) bucket.store(0, std::memory_order_relaxed);
    generation.store(new_generation, std::memory_order_release);  // Pairs with Collect.
  }

  void Record(uint64_t value) {
    Add(&buckets[Histogram::BucketOf(value)], uint64_t{1});
    if (~value > inverse_min.load(std::memory_order_relaxed)) {
      inverse_min.store(~value, std::memory_order_relaxed);
    }
    if (value > max.load(std::memory_order_relaxed)) max.store(value, std::memory_order_relaxed);
    const auto wide = static_cast<double>(value);
    Add(&sum, wide);
    Add(&sum_squares, wide * wide);
  }
};

struct ThreadCounts {
  std::array<std::atomic<uint64_t>, TICKER_ENUM_MAX> tickers;
  std::array<HistogramCounts, HISTOGRAM_ENUM_MAX> histograms;
};

class StatisticsImpl final : public BucketedStatistics {
 public:
  uint64_t getTickerCount(uint32_t ticker) const override {
    if (ticker >= TICKER_ENUM_MAX) return 0;
    MutexLock lock(&mutex_);
    return Total(ticker) - taken_[ticker];
  }

  uint64_t getAndResetTickerCount(uint32_t ticker) override {
    if (ticker >= TICKER_ENUM_MAX) return 0;
    MutexLock lock(&mutex_);
    const uint64_t total = Total(ticker);
    const uint64_t count = total - taken_[ticker];
    taken_[ticker] = total;
    return count;
  }

  void setTickerCount(uint32_t ticker, uint64_t count) override {
    if (ticker >= TICKER_ENUM_MAX) return;
    MutexLock lock(&mutex_);
    taken_[ticker] = Total(ticker) - count;
  }

  void recordTick(uint32_t ticker, uint64_t count) override {
    if (ticker >= TICKER_ENUM_MAX || get_stats_level() <= StatsLevel::kExceptTickers) return;
    Add(&threads_.Mine().tickers[ticker], count);
  }

  bool getTickerMap(std::map<std::string, uint64_t>* tickers) const override {
    tickers->clear();
    for (const auto& [ticker, name] : TickersNameMap) (*tickers)[name] = getTickerCount(ticker);
    return true;
  }

  void recordInHistogram(uint32_t histogram, uint64_t value) override {
    if (histogram >= HISTOGRAM_ENUM_MAX) return;
    if (get_stats_level() <= StatsLevel::kExceptHistogramOrTimers) return;
    HistogramCounts& counts = threads_.Mine().histograms[histogram];
    const uint64_t generation = generation_.load(std::memory_order_relaxed);
    if (counts.generation.load(std::memory_order_relaxed) != generation) counts.Clear(generation);
    counts.Record(value);
  }

  Histogram Values(uint32_t histogram) const override { return Collect(histogram); }

  void histogramData(uint32_t histogram, HistogramData* data) const override {
    const Histogram values = Collect(histogram);
    data->median = values.Median();
    data->percentile95 = values.Percentile(95);
    data->percentile99 = values.Percentile(99);
    data->average = values.Average();
    data->standard_deviation = values.StandardDeviation();
    data->max = static_cast<double>(values.max());
    data->count = values.count();
    data->sum = static_cast<uint64_t>(values.sum());
    data->min = static_cast<double>(values.min());
  }

  std::string getHistogramString(uint32_t histogram) const override {
    return Collect(histogram).ToString();
  }

  Status Reset() override {
    MutexLock lock(&mutex_);
    for (uint32_t ticker = 0; ticker < TICKER_ENUM_MAX; ++ticker) taken_[ticker] = Total(ticker);
    generation_.fetch_add(1, std::memory_order_relaxed);
    return Status::OK();
  }

  std::string ToString() const override {
    std::string text;
    std::array<char, 400> line;
    for (const auto& [ticker, name] : TickersNameMap) {
      std::snprintf(line.data(), line.size(), "%s COUNT : %" PRIu64 "\n", name.c_str(),
                    getTickerCount(ticker));
      text += line.data();
    }
    for (const auto& [histogram, name] : HistogramsNameMap) {
      const Histogram values = Collect(histogram);
      std::snprintf(
          line.data(), line.size(),
          "%s P50 : %f P95 : %f P99 : %f P100 : %f COUNT : %" PRIu64 " SUM : %" PRIu64 "\n",
          name.c_str(), values.Median(), values.Percentile(95), values.Percentile(99),
          static_cast<double>(values.max()), values.count(), static_cast<uint64_t>(values.sum()));
      text += line.data();
    }
    return text;
  }

 private:
  /// The total since the start.
  uint64_t Total(uint32_t ticker) const {
    uint64_t total = 0;
    threads_.ForEach([&](const ThreadCounts& counts) {
      total += counts.tickers[ticker].load(std::memory_order_relaxed);
    });
    return total;
  }

  Histogram Collect(uint32_t histogram) const {
    Histogram values;
    if (histogram >= HISTOGRAM_ENUM_MAX) return values;
    const uint64_t generation = generation_.load(std::memory_order_relaxed);
    threads_.ForEach([&](const ThreadCounts& thread) {
      const HistogramCounts& counts = thread.histograms[histogram];
      // Acquire: pairs with Clear.
      if (counts.generation.load(std::memory_order_acquire) != generation) return;
      std::array<uint64_t, Histogram::kMaxBuckets> buckets;
      for (size_t i = 0; i < buckets.size(); ++i) {
        buckets[i] = counts.buckets[i].load(std::memory_order_relaxed);
      }
      const uint64_t min = ~counts.inverse_min.load(std::memory_order_relaxed);
      const uint64_t max = counts.max.load(std::memory_order_relaxed);
      // Its thread is about to count a first value, or to forget what was before a reset.
      if (min > max) return;
      values.MergeCounts(buckets, min, max, counts.sum.load(std::memory_order_relaxed),
                         counts.sum_squares.load(std::memory_order_relaxed));
    });
    return values;
  }

  PerThread<ThreadCounts> threads_;
  std::atomic<uint64_t> generation_{1};  ///< Grows with each reset.
  mutable Mutex mutex_;
  /// What does not count of the totals, modulo 2^64.
  std::array<uint64_t, TICKER_ENUM_MAX> taken_ GUARDED_BY(mutex_) = {};
};

}  // namespace

std::shared_ptr<Statistics> CreateDBStatistics() { return std::make_shared<StatisticsImpl>(); }

}  // namespace nacre
