#include "db_bench/rocksdb_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>

#include <algorithm>

namespace nacre::bench {
namespace {

rocksdb::Options CommonOptions(const BenchConfig& config) {
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = config.write_buffer_size;
  options.max_write_buffer_number = config.max_write_buffer_number;
  options.max_background_jobs = config.max_background_jobs;
  options.max_subcompactions = config.subcompactions;
  options.target_file_size_base = config.target_file_size_base;
  options.max_bytes_for_level_base = config.max_bytes_for_level_base;
  options.max_bytes_for_level_multiplier = config.max_bytes_for_level_multiplier;
  options.level0_file_num_compaction_trigger = config.level0_file_num_compaction_trigger;
  options.level0_slowdown_writes_trigger = config.level0_slowdown_writes_trigger;
  options.level0_stop_writes_trigger = config.level0_stop_writes_trigger;
  options.delayed_write_rate = config.delayed_write_rate;
  options.enable_pipelined_write = true;
  if (config.statistics) options.statistics = rocksdb::CreateDBStatistics();
  return options;
}

rocksdb::BlockBasedTableOptions DefaultTables(const BenchConfig& config) {
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 4096;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  table.block_cache = rocksdb::NewLRUCache(config.cache_size);
  if (config.bloom_bits > 0) {
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(config.bloom_bits));
  }
  return table;
}

}  // namespace

rocksdb::Options MakeRocksdbOptions(const BenchConfig& config) {
  rocksdb::Options options = CommonOptions(config);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(DefaultTables(config)));
  return options;
}

}  // namespace nacre::bench
