#include "db_bench/engine/rocksdb_pool.h"

namespace nacre::bench {

Status RocksdbPool::Open(const BenchConfig& config, std::unique_ptr<RocksdbPool>* pool) {
  std::unique_ptr<RocksdbPool> made(new RocksdbPool());
  NACRE_RETURN_IF_ERROR(Pool::Open(config.pool, &made->pool_).WithContext("--pool=" + config.pool));
  made->device_ = static_cast<pool::PoolImpl*>(made->pool_.get())->client()->device();
  rocksfs::PoolFileSystemOptions options;
  options.redundancy = config.options.redundancy;
  NACRE_RETURN_IF_ERROR(rocksfs::PoolFileSystem::Open(made->pool_, options, &made->files_));
  made->env_ = rocksdb::NewCompositeEnv(made->files_);
  *pool = std::move(made);
  return Status::OK();
}

TrafficCounters RocksdbPool::traffic() const {
  const rdma::TrafficCounters device = device_->traffic();
  TrafficCounters counters;
  counters.compute_read = device.bytes_read;
  counters.compute_written = device.bytes_written;
  return counters;
}

}  // namespace nacre::bench
