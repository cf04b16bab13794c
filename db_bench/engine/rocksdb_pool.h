#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <memory>

#include "adapters/rocksdb_fs/pool_file_system.h"
#include "db_bench/config.h"
#include "db_bench/engine/engine.h"
#include "nacre/pool.h"
#include "nacre/status.h"
#include "pool/pool_impl.h"

namespace nacre::bench {

/// RocksDB's files in --pool instead of a folder, until this object ends.
///
/// Thread safety: all methods may be called from many threads at once.
class RocksdbPool {
 public:
  /// Failures: see PoolFileSystem::Open.
  static Status Open(const BenchConfig& config, std::unique_ptr<RocksdbPool>* pool);

  rocksdb::Env* env() const { return env_.get(); }
  /// Network traffic of this process's files; the nodes have none of their own.
  TrafficCounters traffic() const;
  /// Bytes of files, with all copies.
  uint64_t stored_bytes() const { return files_->Usage().used_bytes; }

 private:
  RocksdbPool() = default;

  std::shared_ptr<Pool> pool_;
  rdma::Device* device_ = nullptr;
  std::shared_ptr<rocksfs::PoolFileSystem> files_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace nacre::bench
