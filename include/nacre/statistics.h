#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/status.h"

namespace nacre {

// Names of enumerators and methods are RocksDB's, so that code which reads its statistics reads
// these. Of its tickers and histograms those are here that mean something in Nacre: there is no
// block cache, no file and no compression.

/// Counters. Micros are of wall time.
enum Tickers : uint32_t {
  NUMBER_KEYS_WRITTEN = 0,  ///< Updates of any kind.
  NUMBER_KEYS_READ,         ///< Keys that Get read.
  BYTES_WRITTEN,            ///< Bytes of batches, as GetDataSize, or of key and value.
  BYTES_READ,               ///< Bytes of values that Get returned.
  NUMBER_DB_SEEK,
  NUMBER_DB_NEXT,
  NUMBER_DB_PREV,
  NUMBER_DB_SEEK_FOUND,
  NUMBER_DB_NEXT_FOUND,
  NUMBER_DB_PREV_FOUND,
  ITER_BYTES_READ,  ///< Bytes of keys and values that iterators returned.
  STALL_MICROS,     ///< Time that writers waited for flushes and compactions.
  NUMBER_MULTIGET_CALLS,
  NUMBER_MULTIGET_KEYS_READ,
  NUMBER_MULTIGET_BYTES_READ,
  NUMBER_MULTIGET_KEYS_FOUND,
  WAL_FILE_SYNCED,  ///< Calls of FlushWAL and SyncWAL.
  WAL_FILE_BYTES,   ///< Bytes of batches that went to the log.
  WRITE_WITH_WAL,   ///< Calls.
  COMPACT_READ_BYTES,
  COMPACT_WRITE_BYTES,
  FLUSH_WRITE_BYTES,
  NO_ITERATOR_CREATED,
  NO_ITERATOR_DELETED,
  ROW_CACHE_HIT,   ///< Records that a lookup found in the record cache.
  ROW_CACHE_MISS,  ///< Records that it had to read, with a record cache.
  TICKER_ENUM_MAX
};

enum Histograms : uint32_t {
  DB_GET = 0,  ///< Micros of a Get.
  DB_WRITE,    ///< Micros of a Put, Delete, Write and so on.
  COMPACTION_TIME,
  COMPACTION_CPU_TIME,  ///< Micros of processors, of nodes too.
  WAL_FILE_SYNC_MICROS,
  DB_MULTIGET,
  NUM_FILES_IN_SINGLE_COMPACTION,
  DB_SEEK,
  WRITE_STALL,
  BYTES_PER_READ,
  BYTES_PER_WRITE,
  BYTES_PER_MULTIGET,
  FLUSH_TIME,
  HISTOGRAM_ENUM_MAX
};

/// The names that dashboards know, such as "rocksdb.number.keys.written". They are never destroyed,
/// so that threads may use them while the process ends.
extern const std::vector<std::pair<Tickers, std::string>>& TickersNameMap;
extern const std::vector<std::pair<Histograms, std::string>>& HistogramsNameMap;

struct HistogramData {
  double median = 0;
  double percentile95 = 0;
  double percentile99 = 0;
  double average = 0;
  double standard_deviation = 0;
  double max = 0;
  uint64_t count = 0;
  uint64_t sum = 0;
  double min = 0;
};

/// What is counted; each level counts what those before it do, and more.
enum StatsLevel : uint8_t {
  kDisableAll,
  kExceptTickers = kDisableAll,
  kExceptHistogramOrTimers,  ///< Tickers only.
  kExceptTimers,             ///< Records histograms of sizes and numbers as well.
  kExceptDetailedTimers,     ///< Records times as well; the default, as in RocksDB.
  kExceptTimeForMutex,
  kAll,
};

/// What databases count (`Options::statistics`), operations of an AsyncDB too: each thread in
/// memory of its own, so a number costs a few nanoseconds whatever the number of threads; a time
/// costs two looks at the clock.
///
/// Thread safety: every method may be called from many threads at once. What is counted meanwhile
/// may be seen or not.
class Statistics {
 public:
  virtual ~Statistics() = default;

  virtual uint64_t getTickerCount(uint32_t ticker) const = 0;
  virtual uint64_t getAndResetTickerCount(uint32_t ticker) = 0;
  virtual void setTickerCount(uint32_t ticker, uint64_t count) = 0;
  virtual void recordTick(uint32_t ticker, uint64_t count = 1) = 0;
  virtual bool getTickerMap(std::map<std::string, uint64_t>* tickers) const = 0;

  /// Records a time, in microseconds, which `kExceptTimers` and below do not want.
  void reportTimeToHistogram(uint32_t histogram, uint64_t value) {
    if (get_stats_level() > StatsLevel::kExceptTimers) recordInHistogram(histogram, value);
  }
  virtual void recordInHistogram(uint32_t histogram, uint64_t value) = 0;
  virtual void histogramData(uint32_t histogram, HistogramData* data) const = 0;
  virtual std::string getHistogramString(uint32_t histogram) const = 0;

  /// Everything is zero again.
  virtual Status Reset() = 0;
  /// A line for each ticker and histogram, as RocksDB's.
  virtual std::string ToString() const = 0;

  void set_stats_level(StatsLevel level) { level_.store(level, std::memory_order_relaxed); }
  StatsLevel get_stats_level() const { return level_.load(std::memory_order_relaxed); }

 private:
  std::atomic<StatsLevel> level_{StatsLevel::kExceptDetailedTimers};
};

/// Makes the object for `Options::statistics`; several databases may share it.
std::shared_ptr<Statistics> CreateDBStatistics();

}  // namespace nacre
