#include "db_bench/flags/flags.h"

#include <fmt/format.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "db_bench/benchmark_list.h"
#include "db_bench/flags/flag_choice.h"
#include "db_bench/flags/load_flags.h"
#include "db_bench/flags/member_flags.h"
#include "db_bench/flags/transaction_flags.h"
#include "db_bench/key_generator.h"
#include "db_bench/report/json_report.h"
#include "nacre/convenience.h"
#include "nacre/options.h"
#include "util/log.h"

// Names, meaning and defaults are RocksDB's where its db_bench has the flag. Defaults that differ:
// --benchmarks (those there are), and --compression_type (none).

DEFINE_string(benchmarks,
              "fillseq,fillrandom,overwrite,readrandom,seekrandom,seekrandomwhilewriting,readseq,"
              "readreverse,compact,waitforcompaction,multireadrandom,readwhilewriting,"
              "readrandomwriterandom",
              "Comma-separated list of benchmarks, run in this order; see below");
DEFINE_string(engine, "nacre", "Database under test: nacre, rocksdb, leveldb or lmdb");
DEFINE_string(rocksdb_profile, "default",
              "default: as RocksDB's db_bench without flags. inmemory: tuned for tables in memory: "
              "blocks read in place over mmap without a block cache, Bloom filters on tables (10 "
              "bits) and MemTables, hash index in blocks. Plain tables were no faster in total "
              "order and cannot go backwards");

DEFINE_int64(num, 1000000, "Number of keys: they are the numbers below it");
DEFINE_int64(reads, -1, "Reads of each thread; negative means --num");
DEFINE_int64(writes, -1, "Writes of each thread; negative means --num");
DEFINE_int64(deletes, -1, "Deletes of each thread; negative means --num");
DEFINE_int64(seeks, -1, "Seeks of each thread; negative means --reads");
DEFINE_int64(readwrites, -1,
             "Operations of each thread in mixed benchmarks; negative means "
             "the larger one of --reads and --writes");
DEFINE_int64(threads, 1, "Concurrent threads");
DEFINE_int64(duration, 0,
             "Seconds that benchmarks in random order go on for; 0 lets the numbers decide");
DEFINE_int64(ops_between_duration_checks, 1000, "How often the clock is read for --duration");

DEFINE_int64(key_size, 16, "Bytes of a key");
DEFINE_int64(value_size, 100, "Bytes of a value in the fixed distribution");
DEFINE_string(
    value_size_distribution_type, "fixed",
    "fixed, uniform, normal (six standard deviations from the smallest to the largest) or "
    "pareto (--value_k, --value_sigma)");
DEFINE_int64(value_size_min, 100, "Smallest value of the other distributions");
DEFINE_int64(value_size_max, 102400, "Largest value of the other distributions");
DEFINE_double(compression_ratio, 0.5, "What a compressor would shrink the values to");
DEFINE_int64(batch_size, 1, "Entries of a WriteBatch; keys of a MultiGet");
DEFINE_int64(multiread_batch, 0, "Keys of a MultiGet in multireadrandom; 0: --batch_size");
DEFINE_int64(seed, 0, "Decides all random numbers; 0 takes the time");

DEFINE_int64(seek_nexts, 0, "Steps of the iterator after each seek");
DEFINE_bool(reverse_iterator, false, "Step backwards after a seek");
DEFINE_int64(async_reads, 256, "Coroutines of a thread in asyncreadrandom");
DEFINE_bool(multiread_batched, false,
            "MultiGet into pinned slices; otherwise into vectors of strings");
DEFINE_int64(readwritepercent, 90, "Percentage of reads in readrandomwriterandom");
DEFINE_int64(benchmark_write_rate_limit, 0,
             "Bytes per second that all writers together may write; 0 is no limit");
DEFINE_bool(finish_after_writes, false,
            "The writer beside the readers ends after --writes instead of with the readers");

DEFINE_string(
    db, "",
    "Folder of rocksdb, leveldb and lmdb (default: a new one in memory, removed at the end), "
    "or name of the database in nacre's pool (default: db_bench)");
DEFINE_bool(use_existing_db, false,
            "Keep the database that is there; benchmarks that want a new one are skipped");
DEFINE_bool(readonly, false,
            "nacre: read the database as it is when it is opened; another process may own it");
DEFINE_bool(use_secondary_db, false,
            "nacre: read the database of another process, and follow what it writes");
DEFINE_double(secondary_update_interval, 5,
              "Seconds from one catching up of --use_secondary_db or --followers to the next; 0: "
              "never by itself");
DEFINE_int64(sharded, 0,
             "nacre: a keyspace of so many shards takes the place of the database; they divide the "
             "--num keys evenly. 0: there is none");
DEFINE_int64(followers, 0,
             "nacre: so many followers of the database that this process owns, each with "
             "connections of its own; threads read from them in turn, and write to the owner");
DEFINE_bool(linearizable, false,
            "Each read of a follower sees all that was acknowledged before it");
DEFINE_bool(disable_wal, false, "Write no log (an embedded pool has none anyway)");
DEFINE_bool(verify_checksum, true, "Check what is read from tables");
DEFINE_bool(statistics, false, "Collect RocksDB's statistics; `stats` prints them");
DEFINE_int64(write_buffer_size, 64 << 20, "Bytes of a MemTable");
DEFINE_string(encryption_key_file, "",
              "nacre: file with keys, a line 'ID HEX' each, by which the database is encrypted");
DEFINE_bool(home_nodes, false, "nacre: keep each database, or shard, on few nodes of the pool");
DEFINE_int64(
    db_write_buffer_size, 0,
    "nacre, rocksdb: bytes of all MemTables, those of all shards together; 0: each may have its "
    "own");
DEFINE_int64(max_write_buffer_number, 2, "MemTables, the active one included");
DEFINE_int64(max_background_jobs, 2, "Concurrent flushes and compactions");
DEFINE_int64(subcompactions, 0,
             "Parts that a compaction may be cut into; 0: as many as idle workers of nodes, with "
             "RocksDB one");
DEFINE_int64(max_subcompactions, -1, "The same, by the name of the option; wins if not negative");
DEFINE_int64(target_file_size_base, 64 << 20, "Bytes of a table in level 1");
DEFINE_int64(max_bytes_for_level_base, 256 << 20, "Bytes of level 1");
DEFINE_double(max_bytes_for_level_multiplier, 10, "Growth from level to level");
DEFINE_int64(level0_file_num_compaction_trigger, 4, "Tables in level 0 that start a compaction");
DEFINE_int64(level0_slowdown_writes_trigger, 20, "Tables in level 0 that slow writes down");
DEFINE_int64(level0_stop_writes_trigger, 36, "Tables in level 0 that stop writes");
DEFINE_int64(delayed_write_rate, 8 << 20, "Bytes per second of writes that are slowed down");
DEFINE_int64(cache_size, 8 << 20,
             "Bytes of the block cache (leveldb; rocksdb, but for its inmemory profile); rocksdb "
             "with --pool: 0 is none");
DEFINE_int64(bloom_bits, -1,
             "Bloom filter bits per key (rocksdb, leveldb); negative or 0: none in rocksdb's "
             "default profile and leveldb, 10 else");
DEFINE_int64(block_size, 4096, "rocksdb: bytes of a block of a table");
DEFINE_string(compression_type, "none", "Only none");

DEFINE_string(pool, "embedded:?nodes=4&size=1GiB",
              "URI of the memory nodes. rocksdb has its files there if this is given, by a file "
              "system over the pool (block-based tables, read and written one-sided, names in this "
              "process), instead of in a folder");
DEFINE_uint64(repair_bytes_per_second, nacre::Options().repair_bytes_per_second,
              "nacre: limit of what is made anew when nodes are lost; 0: none");
DEFINE_string(redundancy, "none",
              "nacre: none, rep(n) or rs(k,m), or by level; rocksdb with --pool: none or rep(n)");
DEFINE_string(compaction, "auto",
              "nacre: where compactions run: auto (on memory nodes if they can) or compute");
DEFINE_uint64(slab_size, nacre::Options().slab_size,
              "nacre: bytes of a slab, as the nodes have it (--slab_size of nacre-memnode)");
DEFINE_uint64(chunk_size, nacre::Options().chunk_size, "nacre: bytes that tables are striped by");
DEFINE_int64(manifest_image_interval, nacre::Options().manifest_image_interval.count(),
             "nacre: milliseconds between updates of the manifest's image");
DEFINE_uint64(slow_operation_threshold, 0,
              "nacre: microseconds from which on an operation is told on standard error, with what "
              "it waited for; 0: none");
DEFINE_string(near_data_flush, "auto",
              "nacre: whether memory nodes make tables of the log: auto, on or off");
DEFINE_int64(index_memory_budget, -1,
             "nacre: bytes of indexes in this process; negative is no limit");
DEFINE_int64(record_cache_size, 0, "nacre: bytes of the cache of hot records");

DEFINE_bool(histogram, false,
            "Time each operation and print histograms. It costs fast operations some speed, as in "
            "RocksDB's db_bench");
DEFINE_int64(latency_sample_period, 17,
             "Without --histogram one in so many operations is timed, for the percentiles; calls "
             "with several operations are all timed. 0: none");
DEFINE_bool(count_remote_reads, false,
            "nacre: count in the JSON how often each timed operation reads nodes' memory");
DEFINE_int64(stats_interval, 0, "Report on standard error every so many operations of a thread");
DEFINE_int64(stats_interval_seconds, 0, "Report on standard error every so many seconds");
DEFINE_string(json, "", "File to write the results to as JSON");
DEFINE_string(
    report_file, "",
    "File to write a line of CSV to for each interval of a benchmark: seconds, operations "
    "a second, latencies, bytes repaired so far, and the benchmark's name");
DEFINE_double(report_interval_seconds, 1, "Seconds of such an interval");

DEFINE_string(checkpoint_dir, "", "Folder that checkpoint writes to and restore reads from");
DEFINE_int64(checkpoint_threads, 4, "Tables that these copy at once");
DEFINE_int64(tail_bytes, 64 << 20,
             "Bytes of keys and values that `tail` writes, and that `takeover` looks for");
DEFINE_int64(kill_pid, 0,
             "Process, a memory node of this machine, that the benchmark `kill` and "
             "--kill_at_seconds kill; 0: none");
DEFINE_double(kill_at_seconds, 0,
              "Kill it so many seconds after the start of the first benchmark that runs for "
              "--duration; 0: do not");

DECLARE_bool(help);
DECLARE_bool(helpshort);
DECLARE_bool(helpfull);

namespace nacre::bench {
namespace {

constexpr int64_t kKiB = 1 << 10;
constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;
constexpr int64_t kTiB = int64_t{1} << 40;
constexpr int64_t kMaxOps = int64_t{1} << 48;

struct Range {
  const char* flag;
  int64_t value;
  int64_t min;
  int64_t max;
};

Status CheckRanges() {
  const Range ranges[] = {
      {"num", FLAGS_num, 1, kMaxOps},
      {"reads", FLAGS_reads, -1, kMaxOps},
      {"writes", FLAGS_writes, -1, kMaxOps},
      {"deletes", FLAGS_deletes, -1, kMaxOps},
      {"seeks", FLAGS_seeks, -1, kMaxOps},
      {"readwrites", FLAGS_readwrites, -1, kMaxOps},
      {"threads", FLAGS_threads, 1, 1024},
      {"duration", FLAGS_duration, 0, 10'000'000},
      {"ops_between_duration_checks", FLAGS_ops_between_duration_checks, 1, kMaxOps},
      {"key_size", FLAGS_key_size, 1, 64 * kKiB},
      {"value_size", FLAGS_value_size, 0, kGiB},
      {"value_size_min", FLAGS_value_size_min, 0, kGiB},
      {"value_size_max", FLAGS_value_size_max, 0, kGiB},
      {"batch_size", FLAGS_batch_size, 1, kMiB},
      {"multiread_batch", FLAGS_multiread_batch, 0, kMiB},
      {"async_reads", FLAGS_async_reads, 1, kMiB},
      {"seed", FLAGS_seed, 0, INT64_MAX},
      {"seek_nexts", FLAGS_seek_nexts, 0, INT32_MAX},
      {"readwritepercent", FLAGS_readwritepercent, 0, 100},
      {"benchmark_write_rate_limit", FLAGS_benchmark_write_rate_limit, 0, kTiB},
      {"write_buffer_size", FLAGS_write_buffer_size, 64 * kKiB, 64 * kGiB},
      {"db_write_buffer_size", FLAGS_db_write_buffer_size, 0, 64 * kGiB},
      {"max_write_buffer_number", FLAGS_max_write_buffer_number, 2, 32},
      {"max_background_jobs", FLAGS_max_background_jobs, 1, 256},
      {"subcompactions", FLAGS_subcompactions, 0, 256},
      {"max_subcompactions", FLAGS_max_subcompactions, -1, 256},
      {"target_file_size_base", FLAGS_target_file_size_base, 64 * kKiB, kTiB},
      {"max_bytes_for_level_base", FLAGS_max_bytes_for_level_base, 64 * kKiB, 1024 * kTiB},
      {"level0_file_num_compaction_trigger", FLAGS_level0_file_num_compaction_trigger, 1, kMiB},
      {"level0_slowdown_writes_trigger", FLAGS_level0_slowdown_writes_trigger,
       FLAGS_level0_file_num_compaction_trigger, kMiB},
      {"level0_stop_writes_trigger", FLAGS_level0_stop_writes_trigger,
       FLAGS_level0_slowdown_writes_trigger, kMiB},
      {"delayed_write_rate", FLAGS_delayed_write_rate, 1, kTiB},
      {"cache_size", FLAGS_cache_size, 0, kTiB},
      {"bloom_bits", FLAGS_bloom_bits, -1, 100},
      {"block_size", FLAGS_block_size, 64, kGiB},
      {"index_memory_budget", FLAGS_index_memory_budget, -1, INT64_MAX},
      {"record_cache_size", FLAGS_record_cache_size, 0, kTiB},
      {"latency_sample_period", FLAGS_latency_sample_period, 0, kMaxOps},
      {"manifest_image_interval", FLAGS_manifest_image_interval, 1, 1'000'000'000},
      {"stats_interval", FLAGS_stats_interval, 0, kMaxOps},
      {"stats_interval_seconds", FLAGS_stats_interval_seconds, 0, 1'000'000},
      {"checkpoint_threads", FLAGS_checkpoint_threads, 1, 64},
      {"followers", FLAGS_followers, 0, 64},
      {"sharded", FLAGS_sharded, 0, 1024},
      {"tail_bytes", FLAGS_tail_bytes, 1, kTiB},
      {"kill_pid", FLAGS_kill_pid, 0, INT32_MAX},
  };
  for (const Range& range : ranges) {
    if (range.value >= range.min && range.value <= range.max) continue;
    return Status::InvalidArgument(
        fmt::format("--{}={}: must be in [{}, {}]", range.flag, range.value, range.min, range.max));
  }
  // Written so that NaN fails.
  if (!(FLAGS_compression_ratio >= 0 && FLAGS_compression_ratio <= 1)) {
    return Status::InvalidArgument("--compression_ratio must be in [0, 1]");
  }
  if (!(FLAGS_max_bytes_for_level_multiplier >= 1 &&
        FLAGS_max_bytes_for_level_multiplier <= 1000)) {
    return Status::InvalidArgument("--max_bytes_for_level_multiplier must be in [1, 1000]");
  }
  if (!(FLAGS_report_interval_seconds >= 0.001 && FLAGS_report_interval_seconds <= 1e6)) {
    return Status::InvalidArgument("--report_interval_seconds must be in [0.001, 1000000]");
  }
  if (!(FLAGS_secondary_update_interval >= 0 && FLAGS_secondary_update_interval <= 1e6)) {
    return Status::InvalidArgument("--secondary_update_interval must be in [0, 1000000]");
  }
  if (!(FLAGS_kill_at_seconds >= 0 && FLAGS_kill_at_seconds <= 1e6)) {
    return Status::InvalidArgument("--kill_at_seconds must be in [0, 1000000]");
  }
  if (FLAGS_kill_at_seconds > 0 && (FLAGS_kill_pid == 0 || FLAGS_duration == 0)) {
    return Status::InvalidArgument("--kill_at_seconds needs --kill_pid and --duration");
  }
  return Status::OK();
}

Status ParseChoices(BenchConfig* config) {
  NACRE_RETURN_IF_ERROR(Choose<EngineKind>("engine", FLAGS_engine,
                                           {{"nacre", EngineKind::kNacre},
                                            {"rocksdb", EngineKind::kRocksdb},
                                            {"leveldb", EngineKind::kLeveldb},
                                            {"lmdb", EngineKind::kLmdb}},
                                           &config->engine));
  NACRE_RETURN_IF_ERROR(Choose<RocksdbProfile>(
      "rocksdb_profile", FLAGS_rocksdb_profile,
      {{"default", RocksdbProfile::kDefault}, {"inmemory", RocksdbProfile::kInMemory}},
      &config->rocksdb_profile));
  NACRE_RETURN_IF_ERROR(Choose<CompactionSite>(
      "compaction", FLAGS_compaction,
      {{"auto", CompactionSite::kAuto}, {"compute", CompactionSite::kCompute}},
      &config->options.compaction));
  NACRE_RETURN_IF_ERROR(Choose<NearDataFlush>(
      "near_data_flush", FLAGS_near_data_flush,
      {{"auto", NearDataFlush::kAuto}, {"on", NearDataFlush::kOn}, {"off", NearDataFlush::kOff}},
      &config->options.near_data_flush));
  NACRE_RETURN_IF_ERROR(Choose<ValueSizeDistribution>("value_size_distribution_type",
                                                      FLAGS_value_size_distribution_type,
                                                      {{"fixed", ValueSizeDistribution::kFixed},
                                                       {"uniform", ValueSizeDistribution::kUniform},
                                                       {"normal", ValueSizeDistribution::kNormal},
                                                       {"pareto", ValueSizeDistribution::kPareto}},
                                                      &config->value_size_distribution));
  if (FLAGS_compression_type != "none") {
    return Status::InvalidArgument(
        fmt::format("--compression_type={}: must be none", FLAGS_compression_type));
  }
  return Status::OK();
}

Status ParseBenchmarks(std::vector<std::string>* benchmarks) {
  std::string_view rest = FLAGS_benchmarks;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    if (name.empty()) continue;
    if (FindBenchmark(name) == nullptr) {
      return Status::InvalidArgument(fmt::format("unknown benchmark '{}'", name));
    }
    benchmarks->emplace_back(name);
  }
  return benchmarks->empty() ? Status::InvalidArgument("--benchmarks names none") : Status::OK();
}

Status ParseSizes(BenchConfig* config) {
  const auto or_num = [](int64_t value) {
    return static_cast<uint64_t>(value < 0 ? FLAGS_num : value);
  };
  config->num = static_cast<uint64_t>(FLAGS_num);
  config->reads = or_num(FLAGS_reads);
  config->writes = or_num(FLAGS_writes);
  config->deletes = or_num(FLAGS_deletes);
  config->seeks = FLAGS_seeks < 0 ? config->reads : static_cast<uint64_t>(FLAGS_seeks);
  config->readwrites =
      or_num(FLAGS_readwrites < 0 ? std::max(FLAGS_reads, FLAGS_writes) : FLAGS_readwrites);
  config->key_size = static_cast<size_t>(FLAGS_key_size);
  const uint64_t numbers = std::max(config->num, config->writes);
  if (numbers > KeyGenerator::Capacity(config->key_size)) {
    return Status::InvalidArgument(
        fmt::format("--key_size={}: too small for {} different keys", FLAGS_key_size, numbers));
  }
  for (const std::string& name : config->benchmarks) {
    if (FindBenchmark(name)->ycsb && config->key_size < 8) {
      return Status::InvalidArgument(
          fmt::format("--key_size={}: {} needs 8 bytes, for hashes", FLAGS_key_size, name));
    }
  }
  const bool fixed = config->value_size_distribution == ValueSizeDistribution::kFixed;
  config->value_size_min = static_cast<size_t>(fixed ? FLAGS_value_size : FLAGS_value_size_min);
  config->value_size_max = static_cast<size_t>(fixed ? FLAGS_value_size : FLAGS_value_size_max);
  if (config->value_size_min > config->value_size_max) {
    return Status::InvalidArgument(
        fmt::format("--value_size_min={}: larger than --value_size_max", FLAGS_value_size_min));
  }
  return Status::OK();
}

Status CheckSharded(EngineKind engine) {
  if (FLAGS_sharded == 0) return Status::OK();
  const auto refused = [](const std::string& why) {
    return Status::InvalidArgument("--sharded " + why);
  };
  if (engine != EngineKind::kNacre) return refused("is there for --engine=nacre only");
  for (const auto& [flag, given] : {std::pair("readonly", FLAGS_readonly),
                                    std::pair("use_secondary_db", FLAGS_use_secondary_db),
                                    std::pair("followers", FLAGS_followers > 0)}) {
    if (given) return refused(fmt::format("and --{} exclude one another", flag));
  }
  return Status::OK();
}

Status CheckFollowing(EngineKind engine) {
  const auto refused = [](const std::string& flag, const char* why) {
    return Status::InvalidArgument(fmt::format("--{} {}", flag, why));
  };
  const std::string flag = FLAGS_readonly           ? "readonly"
                           : FLAGS_use_secondary_db ? "use_secondary_db"
                           : FLAGS_followers > 0    ? "followers"
                                                    : "";
  if (flag.empty()) {
    return FLAGS_linearizable
               ? refused("linearizable", "needs followers: --use_secondary_db or --followers")
               : Status::OK();
  }
  if (engine != EngineKind::kNacre) return refused(flag, "is there for --engine=nacre only");
  if (FLAGS_pool.starts_with("embedded:")) {
    return refused(flag, "needs --pool: nobody can follow a database in an embedded pool");
  }
  if (FLAGS_readonly && FLAGS_use_secondary_db) {
    return refused("readonly", "and --use_secondary_db exclude one another");
  }
  if (FLAGS_readonly && FLAGS_linearizable) {
    return refused("linearizable", "needs a follower that goes on: --use_secondary_db");
  }
  if (FLAGS_followers > 0) {
    return FLAGS_readonly || FLAGS_use_secondary_db
               ? refused("followers",
                         "follow this process, which owns nothing with --readonly or "
                         "--use_secondary_db")
               : Status::OK();
  }
  return FLAGS_use_existing_db ? Status::OK() : refused(flag, "needs --use_existing_db");
}

/// A pool that is named, and not just there by default, holds RocksDB's files.
Status ChooseRemoteProfile(BenchConfig* config) {
  if (config->engine != EngineKind::kRocksdb) return Status::OK();
  if (gflags::GetCommandLineFlagInfoOrDie("pool").is_default) return Status::OK();
  if (config->rocksdb_profile == RocksdbProfile::kInMemory) {
    return Status::InvalidArgument(
        "--rocksdb_profile=inmemory maps its tables, which nobody can in a --pool");
  }
  if (FLAGS_use_existing_db) {
    return Status::InvalidArgument(
        "--use_existing_db: RocksDB's files in a --pool end with the process that made them");
  }
  config->rocksdb_profile = RocksdbProfile::kRemote;
  return Status::OK();
}

/// What needs no checking beyond `CheckRanges`.
void CopyFlags(BenchConfig* config) {
  config->threads = static_cast<int>(FLAGS_threads);
  config->duration_seconds = static_cast<int>(FLAGS_duration);
  config->ops_between_duration_checks = static_cast<uint64_t>(FLAGS_ops_between_duration_checks);
  config->compression_ratio = FLAGS_compression_ratio;
  config->batch_size = static_cast<uint64_t>(FLAGS_batch_size);
  config->async_reads = static_cast<uint64_t>(FLAGS_async_reads);
  config->multiread_batch =
      FLAGS_multiread_batch > 0 ? static_cast<uint64_t>(FLAGS_multiread_batch) : config->batch_size;
  config->seed = static_cast<uint64_t>(FLAGS_seed);
  config->seek_nexts = static_cast<int>(FLAGS_seek_nexts);
  config->reverse_iterator = FLAGS_reverse_iterator;
  config->multiread_batched = FLAGS_multiread_batched;
  config->readwritepercent = static_cast<int>(FLAGS_readwritepercent);
  config->benchmark_write_rate_limit = static_cast<uint64_t>(FLAGS_benchmark_write_rate_limit);
  config->finish_after_writes = FLAGS_finish_after_writes;
  config->db = FLAGS_db;
  config->use_existing_db = FLAGS_use_existing_db;
  config->readonly = FLAGS_readonly;
  config->use_secondary_db = FLAGS_use_secondary_db;
  config->secondary_update_interval = FLAGS_secondary_update_interval;
  config->followers = static_cast<int>(FLAGS_followers);
  config->sharded = static_cast<int>(FLAGS_sharded);
  config->linearizable = FLAGS_linearizable;
  config->disable_wal = FLAGS_disable_wal;
  config->verify_checksum = FLAGS_verify_checksum;
  config->statistics = FLAGS_statistics;
  config->cache_size = static_cast<size_t>(FLAGS_cache_size);
  config->bloom_bits = static_cast<int>(FLAGS_bloom_bits);
  config->block_size = static_cast<size_t>(FLAGS_block_size);
  config->pool = FLAGS_pool;
  config->histogram = FLAGS_histogram;
  config->latency_sample_period =
      FLAGS_histogram ? 1 : static_cast<uint64_t>(FLAGS_latency_sample_period);
  config->count_remote_reads = FLAGS_count_remote_reads;
  config->stats_interval = static_cast<uint64_t>(FLAGS_stats_interval);
  config->stats_interval_seconds = static_cast<int>(FLAGS_stats_interval_seconds);
  config->json = FLAGS_json;
  config->report_file = FLAGS_report_file;
  config->report_interval_seconds = FLAGS_report_interval_seconds;
  config->checkpoint_dir = FLAGS_checkpoint_dir;
  config->checkpoint_threads = static_cast<int>(FLAGS_checkpoint_threads);
  config->tail_bytes = static_cast<uint64_t>(FLAGS_tail_bytes);
  config->kill_pid = static_cast<int>(FLAGS_kill_pid);
  config->kill_at_seconds = FLAGS_kill_at_seconds;
}

/// Our flags and not those of gflags itself.
std::vector<gflags::CommandLineFlagInfo> OwnFlags() {
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  std::erase_if(flags, [](const gflags::CommandLineFlagInfo& flag) {
    return flag.filename.find("db_bench/flags/") == std::string::npos;
  });
  return flags;
}

/// Sets the options that flags are called after.
Status ParseOptions(Options* options) {
  std::unordered_map<std::string, std::string> named;
  for (const gflags::CommandLineFlagInfo& flag : OwnFlags()) named[flag.name] = flag.current_value;
  // These two have shorter words for their choices.
  named.erase("compaction");
  named.erase("near_data_flush");
  if (FLAGS_max_subcompactions <= 0) {
    named["max_subcompactions"] = std::to_string(FLAGS_subcompactions);
  }
  if (FLAGS_index_memory_budget < 0) named.erase("index_memory_budget");
  ConfigOptions others;
  others.ignore_unknown_options = true;
  const Options base = *options;
  NACRE_RETURN_IF_ERROR(GetDBOptionsFromMap(others, base, named, options));
  return GetColumnFamilyOptionsFromMap(others, base, named, options);
}

void ListFlags(BenchConfig* config) {
  for (const gflags::CommandLineFlagInfo& flag : OwnFlags()) {
    config->flags.emplace_back(
        flag.name, flag.type == "string" ? JsonString(flag.current_value) : flag.current_value);
  }
}

}  // namespace

Status ParseFlags(int argc, char** argv, BenchConfig* config, bool* help) {
  gflags::ParseCommandLineNonHelpFlags(&argc, &argv, /*remove_flags=*/true);
  *help = FLAGS_help || FLAGS_helpshort || FLAGS_helpfull;
  if (*help) return Status::OK();
  if (argc > 1) {
    return Status::InvalidArgument(fmt::format("'{}' is no flag", argv[1]));
  }
  NACRE_RETURN_IF_ERROR(CheckRanges());
  NACRE_RETURN_IF_ERROR(ParseChoices(config));
  NACRE_RETURN_IF_ERROR(ParseBenchmarks(&config->benchmarks));
  NACRE_RETURN_IF_ERROR(ParseLoadFlags(config));
  NACRE_RETURN_IF_ERROR(ParseSizes(config));
  if (FLAGS_use_existing_db && FLAGS_db.empty() && config->engine != EngineKind::kNacre) {
    return Status::InvalidArgument("--use_existing_db needs --db");
  }
  NACRE_RETURN_IF_ERROR(CheckSharded(config->engine));
  NACRE_RETURN_IF_ERROR(CheckFollowing(config->engine));
  if (FLAGS_count_remote_reads && config->engine != EngineKind::kNacre) {
    return Status::InvalidArgument("--count_remote_reads is there for --engine=nacre only");
  }
  NACRE_RETURN_IF_ERROR(ChooseRemoteProfile(config));
  // The head of the report and the JSON tell it.
  if (FLAGS_seed == 0) FLAGS_seed = static_cast<int64_t>(std::time(nullptr));
  CopyFlags(config);
  NACRE_RETURN_IF_ERROR(ParseMemberFlags(config));
  NACRE_RETURN_IF_ERROR(ParseTransactionFlags(config));
  NACRE_RETURN_IF_ERROR(ParseOptions(&config->options));
  if (FLAGS_slow_operation_threshold > 0) {
    config->options.info_log = NewStderrLogger(LogLevel::kWarn);
  }
  ListFlags(config);
  return Status::OK();
}

void PrintHelp() {
  std::printf(
      "db_bench measures Nacre, RocksDB, LevelDB or LMDB with the same keys, values and threads.\n"
      "Flags are RocksDB's db_bench's where it has them.\n\nFlags:\n");
  for (const gflags::CommandLineFlagInfo& flag : OwnFlags()) {
    std::printf("  --%s (%s, default %s)\n      %s\n", flag.name.c_str(), flag.type.c_str(),
                flag.type == "string" ? ("\"" + flag.default_value + "\"").c_str()
                                      : flag.default_value.c_str(),
                flag.description.c_str());
  }
  std::printf("\nBenchmarks:\n%s", BenchmarkHelp().c_str());
}

}  // namespace nacre::bench
