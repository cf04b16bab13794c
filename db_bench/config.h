#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nacre/options.h"

namespace nacre::bench {

enum class EngineKind : uint8_t { kNacre, kRocksdb, kLeveldb, kLmdb };
enum class RocksdbProfile : uint8_t {
  kDefault,
  kInMemory,
  kRemote,  ///< Its files lie in --pool; not to be asked for by name.
};
enum class KeyDistribution : uint8_t { kUniform, kZipf, kLatest, kHotspot };
/// What transactions the database is opened with.
enum class Transactions : uint8_t { kNone, kLocking, kOptimistic };
enum class Arrivals : uint8_t { kPoisson, kConstant };
enum class ValueSizeDistribution : uint8_t { kFixed, kUniform, kNormal, kPareto };

/// Everything a run is asked for: the flags after they have been checked. Names are those of the
/// flags; flags.cc says what each means.
///
/// Thread safety: read-only once parsed.
struct BenchConfig {
  std::vector<std::string> benchmarks;
  EngineKind engine = EngineKind::kNacre;
  RocksdbProfile rocksdb_profile = RocksdbProfile::kDefault;

  // ---- How much -----------------------------------------------------------------------------

  uint64_t num = 0;
  uint64_t reads = 0;       ///< Per thread.
  uint64_t writes = 0;      ///< Per thread; 0 as in RocksDB means `num`.
  uint64_t deletes = 0;     ///< Per thread.
  uint64_t seeks = 0;       ///< Per thread.
  uint64_t readwrites = 0;  ///< Operations per thread of mixed benchmarks.
  int threads = 1;
  int duration_seconds = 0;
  uint64_t ops_between_duration_checks = 1000;

  // ---- Keys and values ----------------------------------------------------------------------

  size_t key_size = 0;
  ValueSizeDistribution value_size_distribution = ValueSizeDistribution::kFixed;
  size_t value_size_min = 0;  ///< Equal to `value_size_max` when fixed.
  size_t value_size_max = 0;
  double value_k = 0.2615;
  double value_sigma = 25.45;
  double compression_ratio = 0.5;
  uint64_t batch_size = 1;
  uint64_t async_reads = 256;    ///< Coroutines of a thread in asyncreadrandom.
  uint64_t multiread_batch = 1;  ///< Keys of a MultiGet.
  uint64_t seed = 0;
  KeyDistribution key_dist = KeyDistribution::kUniform;
  double zipf_theta = 0.99;
  double hotspot_set_fraction = 0.2;
  double hotspot_op_fraction = 0.8;

  // ---- Workloads ----------------------------------------------------------------------------

  int seek_nexts = 0;
  bool reverse_iterator = false;
  bool multiread_batched = false;
  int readwritepercent = 90;
  uint64_t benchmark_write_rate_limit = 0;  ///< Bytes per second; 0 is no limit.
  bool finish_after_writes = false;
  double target_ops_per_second = 0;  ///< All threads together; 0: as fast as they can.
  Arrivals arrivals = Arrivals::kPoisson;
  int twitter_cluster = 0;
  uint64_t ttl_ops =
      0;  ///< Operations of all threads that a value of `twitter` lives; 0: for ever.

  // ---- Engines ------------------------------------------------------------------------------

  std::string db;  ///< Folder, or name in the pool; empty lets the engine choose a fresh one.
  bool use_existing_db = false;
  bool readonly = false;
  bool use_secondary_db = false;
  double secondary_update_interval = 0;  ///< Seconds; 0: never by itself.
  int followers = 0;                     ///< Followers of the database that this process owns.
  bool linearizable = false;
  int sharded = 0;  ///< Shards of the keyspace that takes the place of a database; 0: none does.
  std::string coordinator;     ///< Empty: this process owns all shards.
  std::string member_address;  ///< Empty: it owns none, if there is a coordinator.
  std::string child_address;   ///< As `member_address` of the processes that it starts.
  bool read_from_follower = false;
  int child_members = 0;      ///< How many of them own shards beside it.
  bool serve_member = false;  ///< This process is one of them.
  uint64_t moves = 0;
  Transactions transactions = Transactions::kNone;
  int64_t transaction_lock_timeout_ms = 0;
  bool transaction_set_snapshot = false;
  uint64_t transaction_sets = 0;  ///< Keys of a transaction, each in a part of its own of `num`.
  bool disable_wal = false;
  bool verify_checksum = true;
  bool statistics = false;
  /// What the flags that are called like an option say, for each engine that has the option.
  Options options;
  size_t cache_size = 0;
  size_t block_size = 0;
  int bloom_bits = -1;

  std::string pool;
  std::string checkpoint_dir;  ///< The directory of the benchmarks checkpoint and restore.
  int checkpoint_threads = 4;

  // ---- Reports ------------------------------------------------------------------------------

  bool histogram = false;
  uint64_t latency_sample_period = 0;  ///< Every how many operations one is timed; 0 is never.
  bool count_remote_reads = false;
  uint64_t stats_interval = 0;
  int stats_interval_seconds = 0;
  std::string json;
  std::string latency_files;  ///< What the paths of these files begin with; empty: none.
  std::string report_file;
  double report_interval_seconds = 1;

  // ---- Faults -------------------------------------------------------------------------------

  uint64_t tail_bytes = 0;     ///< Bytes that are not flushed when the owner is killed.
  int kill_pid = 0;            ///< The process to kill; 0: none.
  double kill_at_seconds = 0;  ///< When in the first benchmark that runs for --duration; 0: never.

  /// Every flag of this tool with its value as JSON text, by name.
  std::vector<std::pair<std::string, std::string>> flags;
};

const char* EngineName(EngineKind kind);
/// Whether another process owns the database.
inline bool OwnsNothing(const BenchConfig& config) {
  return config.readonly || config.use_secondary_db;
}

}  // namespace nacre::bench
