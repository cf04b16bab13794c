#include "db_bench/engine/rocksdb_options.h"

#include <rocksdb/filter_policy.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>

#include "db_bench/engine/rocksdb_versions.h"

namespace nacre::bench {
namespace {

/// Used by the profiles that have filters unless told otherwise.
constexpr int kFilterBits = 10;
/// Readahead of sequential reads of remote memory: long enough to hide a round trip.
constexpr size_t kRemoteReadahead = 2 << 20;

rocksdb::Options CommonOptions(const BenchConfig& config) {
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = config.options.write_buffer_size;
  options.db_write_buffer_size = config.options.db_write_buffer_size;
  options.max_write_buffer_number = config.options.max_write_buffer_number;
  options.max_background_jobs = config.options.max_background_jobs;
  options.max_subcompactions = config.options.max_subcompactions;
  options.target_file_size_base = config.options.target_file_size_base;
  options.max_bytes_for_level_base = config.options.max_bytes_for_level_base;
  options.max_bytes_for_level_multiplier = config.options.max_bytes_for_level_multiplier;
  options.level0_file_num_compaction_trigger = config.options.level0_file_num_compaction_trigger;
  options.level0_slowdown_writes_trigger = config.options.level0_slowdown_writes_trigger;
  options.level0_stop_writes_trigger = config.options.level0_stop_writes_trigger;
  options.delayed_write_rate = config.options.delayed_write_rate;
  options.enable_pipelined_write = true;
  if (config.statistics) options.statistics = rocksdb::CreateDBStatistics();
  return options;
}

rocksdb::BlockBasedTableOptions DefaultTables(const BenchConfig& config) {
  rocksdb::BlockBasedTableOptions table;
  table.block_size = config.block_size;
  table.checksum = rocksdb::kXXH3;
  table.block_cache = NewRocksdbCache(config.cache_size);
  if (config.bloom_bits > 0) {
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(config.bloom_bits));
  }
  return table;
}

/// Chosen by measuring RocksDB 7.8 with 1,000,000 keys of 20 bytes and values of 400 bytes on
/// tmpfs, one thread, microseconds of CPU per operation, all tables warm (the MemTable empty unless
/// noted):
///
///                                              readrandom  readmissing  seekrandom  readseq
///     blocks of 4 KiB, mmap, no block cache           2.3          0.8        10.5     0.38
///     the same, cache that holds all (LRU)            3.2          0.9        12.5     0.61
///     the same, cache that holds all (HyperClock)     3.2          0.9        11.5     0.58
///     the same, index with first keys, mmap           2.6          0.9        10.2     0.39
///
/// With a full MemTable before the tables, a filter of whole keys on it took readrandom from 6.0
/// to 3.1 and readmissing from 4.0 to 1.0; writes cost 3 % more. Blocks of 512 B, 1, 2 or 16 KiB
/// and other restart intervals were no faster than 4 KiB and 16.
///
/// Plain tables over mmap: in total order readrandom is as fast as that of blocks over mmap (5.2
/// to 5.9 against 5.2, with a full MemTable) and seeks are slower. With a hash index over key
/// prefixes readrandom takes 4.2 and seekrandom 5.5, but then Seek finds nothing beyond the prefix
/// of its target, and in neither mode can an iterator go backwards: readreverse and
/// --reverse_iterator would be impossible. So blocks it is.
void TuneForMemory(const BenchConfig& config, rocksdb::Options* options,
                   rocksdb::BlockBasedTableOptions* table) {
  options->allow_mmap_reads = true;
  options->memtable_whole_key_filtering = true;
  options->memtable_prefix_bloom_size_ratio = 0.02;
  table->no_block_cache = true;
  table->block_cache = nullptr;
  table->filter_policy.reset(
      rocksdb::NewBloomFilterPolicy(config.bloom_bits > 0 ? config.bloom_bits : kFilterBits));
  table->data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
}

/// Filters, and indexes with the tables in this process's memory.
void TuneForPool(const BenchConfig& config, rocksdb::Options* options,
                 rocksdb::BlockBasedTableOptions* table) {
  options->memtable_whole_key_filtering = true;
  options->memtable_prefix_bloom_size_ratio = 0.02;
  options->compaction_readahead_size = kRemoteReadahead;
  table->max_auto_readahead_size = kRemoteReadahead;
  table->filter_policy.reset(
      rocksdb::NewBloomFilterPolicy(config.bloom_bits > 0 ? config.bloom_bits : kFilterBits));
  table->data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  if (config.cache_size == 0) {
    table->no_block_cache = true;
    table->block_cache = nullptr;
  }
}

}  // namespace

rocksdb::Options MakeRocksdbOptions(const BenchConfig& config) {
  rocksdb::Options options = CommonOptions(config);
  rocksdb::BlockBasedTableOptions table = DefaultTables(config);
  if (config.rocksdb_profile == RocksdbProfile::kInMemory) {
    TuneForMemory(config, &options, &table);
  } else if (config.rocksdb_profile == RocksdbProfile::kRemote) {
    TuneForPool(config, &options, &table);
  }
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::ReadOptions MakeRocksdbReadOptions(const BenchConfig& config) {
  rocksdb::ReadOptions options;
  options.verify_checksums = config.verify_checksum;
  if (config.rocksdb_profile == RocksdbProfile::kRemote) {
    options.adaptive_readahead = true;
    options.async_io = true;
  }
  return options;
}

}  // namespace nacre::bench
