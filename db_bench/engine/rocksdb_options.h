#pragma once

#include <rocksdb/options.h>

#include "db_bench/config.h"

namespace nacre::bench {

/// The options of RocksDB for `config.rocksdb_profile`. What all engines have in common (MemTables,
/// background jobs, triggers, level sizes, compression) is the same in all profiles and follows
/// the flags; the profiles differ in how tables are laid out and read.
///
/// `default` is what RocksDB's own db_bench sets without flags: block-based tables of 4 KiB
/// blocks (--block_size), no filter (--bloom_bits=-1), an LRU cache of --cache_size (8 MiB),
/// pipelined writes.
///
/// `inmemory` is the fastest found for tables in memory that serves every benchmark. See
/// rocksdb_options.cc for what was measured.
///
/// `remote` is for tables in a pool (--pool): as `default`, with blocks of --block_size, and with
/// what hides round trips and spares reads. See rocksdb_options.cc for what was measured.
rocksdb::Options MakeRocksdbOptions(const BenchConfig& config);
rocksdb::ReadOptions MakeRocksdbReadOptions(const BenchConfig& config);

}  // namespace nacre::bench
