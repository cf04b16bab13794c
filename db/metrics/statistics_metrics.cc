#include "db/metrics/statistics_metrics.h"

#include <iterator>

#include "util/bucketed_statistics.h"

namespace nacre {
namespace {

using metrics::Kind;

struct TickerMetric {
  Tickers ticker;
  metrics::Description metric;
};

constexpr TickerMetric kTickers[] = {
    {NUMBER_KEYS_WRITTEN, {"nacre_db_keys_written_total", "Updates of any kind.", Kind::kCounter}},
    {NUMBER_KEYS_READ, {"nacre_db_keys_read_total", "Keys that Get read.", Kind::kCounter}},
    {BYTES_WRITTEN,
     {"nacre_db_written_bytes_total", "Bytes of keys and values in updates.", Kind::kCounter}},
    {BYTES_READ,
     {"nacre_db_read_bytes_total", "Bytes of values that Get returned.", Kind::kCounter}},
    {NUMBER_DB_SEEK, {"nacre_db_seeks_total", "Seeks of iterators.", Kind::kCounter}},
    {NUMBER_DB_SEEK_FOUND,
     {"nacre_db_seeks_found_total", "Seeks that found a record.", Kind::kCounter}},
    {NUMBER_DB_NEXT, {"nacre_db_nexts_total", "Steps forward of iterators.", Kind::kCounter}},
    {NUMBER_DB_NEXT_FOUND,
     {"nacre_db_nexts_found_total", "Steps forward that found a record.", Kind::kCounter}},
    {NUMBER_DB_PREV, {"nacre_db_prevs_total", "Steps back of iterators.", Kind::kCounter}},
    {NUMBER_DB_PREV_FOUND,
     {"nacre_db_prevs_found_total", "Steps back that found a record.", Kind::kCounter}},
    {ITER_BYTES_READ,
     {"nacre_db_iterator_read_bytes_total", "Bytes of keys and values that iterators returned.",
      Kind::kCounter}},
    {NO_ITERATOR_CREATED,
     {"nacre_db_iterators_created_total", "Iterators that were made.", Kind::kCounter}},
    {NO_ITERATOR_DELETED,
     {"nacre_db_iterators_deleted_total", "Iterators that have ended.", Kind::kCounter}},
    {NUMBER_MULTIGET_CALLS, {"nacre_db_multigets_total", "Calls of MultiGet.", Kind::kCounter}},
    {NUMBER_MULTIGET_KEYS_READ,
     {"nacre_db_multiget_keys_read_total", "Keys that MultiGet read.", Kind::kCounter}},
    {NUMBER_MULTIGET_KEYS_FOUND,
     {"nacre_db_multiget_keys_found_total", "Keys that MultiGet found.", Kind::kCounter}},
    {NUMBER_MULTIGET_BYTES_READ,
     {"nacre_db_multiget_read_bytes_total", "Bytes of values that MultiGet returned.",
      Kind::kCounter}},
    {WRITE_WITH_WAL,
     {"nacre_db_logged_writes_total", "Writes that went to the log.", Kind::kCounter}},
    {WAL_FILE_BYTES,
     {"nacre_db_logged_bytes_total", "Bytes of batches that went to the log.", Kind::kCounter}},
    {WAL_FILE_SYNCED,
     {"nacre_db_log_syncs_total", "Calls of FlushWAL and SyncWAL.", Kind::kCounter}},
    {ROW_CACHE_HIT,
     {"nacre_db_record_cache_hits_total", "Records that lookups found in the cache of records.",
      Kind::kCounter}},
    {ROW_CACHE_MISS,
     {"nacre_db_record_cache_misses_total", "Records that lookups had to read, with such a cache.",
      Kind::kCounter}},
};
// STALL_MICROS, COMPACT_READ_BYTES, COMPACT_WRITE_BYTES and FLUSH_WRITE_BYTES are told by counters
// that a database has anyway (owner_metrics.cc).
static_assert(std::size(kTickers) + 4 == TICKER_ENUM_MAX);

struct HistogramMetric {
  Histograms histogram;
  metrics::Description metric;
  double unit;
};

constexpr double kMicros = 1e-6;
constexpr HistogramMetric kHistograms[] = {
    {DB_GET, {"nacre_db_get_duration_seconds", "Time of a Get.", Kind::kHistogram}, kMicros},
    {DB_MULTIGET,
     {"nacre_db_multiget_duration_seconds", "Time of a MultiGet.", Kind::kHistogram},
     kMicros},
    {DB_SEEK,
     {"nacre_db_seek_duration_seconds", "Time of a seek of an iterator.", Kind::kHistogram},
     kMicros},
    {DB_WRITE,
     {"nacre_db_write_duration_seconds", "Time of a Put, Delete, Write and so on.",
      Kind::kHistogram},
     kMicros},
    {WRITE_STALL,
     {"nacre_db_write_stall_duration_seconds", "Time that a stalled write waited.",
      Kind::kHistogram},
     kMicros},
    {WAL_FILE_SYNC_MICROS,
     {"nacre_db_log_sync_duration_seconds", "Time of a FlushWAL or SyncWAL.", Kind::kHistogram},
     kMicros},
    {FLUSH_TIME,
     {"nacre_db_flush_duration_seconds", "Time of a flush.", Kind::kHistogram},
     kMicros},
    {COMPACTION_TIME,
     {"nacre_db_compaction_duration_seconds", "Time of a compaction.", Kind::kHistogram},
     kMicros},
    {COMPACTION_CPU_TIME,
     {"nacre_db_compaction_processor_seconds",
      "Processor time of a part of a compaction, wherever it ran.", Kind::kHistogram},
     kMicros},
    {NUM_FILES_IN_SINGLE_COMPACTION,
     {"nacre_db_compaction_input_tables", "Tables that a compaction merged.", Kind::kHistogram},
     1},
    {BYTES_PER_READ,
     {"nacre_db_read_size_bytes", "Bytes of a value that Get returned.", Kind::kHistogram},
     1},
    {BYTES_PER_MULTIGET,
     {"nacre_db_multiget_size_bytes", "Bytes of the values that a MultiGet returned.",
      Kind::kHistogram},
     1},
    {BYTES_PER_WRITE,
     {"nacre_db_write_size_bytes", "Bytes of the updates of a write.", Kind::kHistogram},
     1},
};
static_assert(std::size(kHistograms) == HISTOGRAM_ENUM_MAX);

}  // namespace

void CollectStatistics(const Statistics& statistics, const metrics::Labels& labels,
                       metrics::Page* page) {
  for (const TickerMetric& each : kTickers) {
    page->Add(each.metric, labels, statistics.getTickerCount(each.ticker));
  }
  // An application's own statistics have no buckets that could be seen.
  const auto* const bucketed = dynamic_cast<const BucketedStatistics*>(&statistics);
  if (bucketed == nullptr) return;
  for (const HistogramMetric& each : kHistograms) {
    page->AddHistogram(each.metric, labels, bucketed->Values(each.histogram), each.unit);
  }
}

}  // namespace nacre
