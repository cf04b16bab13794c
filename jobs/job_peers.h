#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/store/table_store.h"
#include "rdma/transport.h"
#include "util/clock.h"
#include "util/memory/arena_block_pool.h"
#include "util/mutex.h"

namespace nacre::pool {

/// How a memory node reaches the other nodes of one pool.
struct JobPeers {
  /// Set in a mixed pool; else the node's own is used.
  std::unique_ptr<rdma::Device> device;
  std::unique_ptr<rdma::MemoryRegion> region;  ///< The node's memory, as `device` knows it.
  std::unique_ptr<PoolClient> client;
  std::unique_ptr<TableStore> store;  ///< Ends before the client.
  /// Memory that jobs of all pools need while they run.
  std::shared_ptr<ArenaBlockSource> blocks;
};

/// One of the nodes that a job's owner reaches.
struct JobPeer {
  NodeId node = kNoNode;  ///< Its number at the owner; below kMaxSlots.
  std::string address;    ///< "shm:/run/n0.sock".
  uint64_t instance_id = 0;
  bool operator==(const JobPeer&) const = default;
};

/// What tells pools apart: the same addresses with another instance behind one is another pool.
struct PeersKey {
  std::string scheme;
  std::vector<JobPeer> peers;
  NodeId self = kNoNode;
  uint64_t slab_bytes = 0;
  std::chrono::milliseconds operation_timeout{0};
  bool operator==(const PeersKey&) const = default;
};

/// Keeps the connections of recent jobs, as one job of a pool is followed by others.
/// Thread safety: all methods may be called from many threads at once.
class JobPeersCache {
 public:
  /// `options`: as `device` was opened with.
  JobPeersCache(rdma::Device* device, rdma::DeviceOptions options, Clock* clock, LocalMemory local)
      : device_(device), options_(std::move(options)), clock_(clock), local_(local) {}

  /// Fails if no device leads to the peers.
  Status Get(const PeersKey& key, std::shared_ptr<JobPeers>* peers) EXCLUDES(mutex_);
  void Clear() EXCLUDES(mutex_);

 private:
  static constexpr size_t kMaxPools = 16;
  /// Kept between jobs: what a flush takes for the keys of a MemTable of the usual size, and more.
  static constexpr size_t kKeptBytes = 32 << 20;
  struct Entry {
    PeersKey key;
    std::shared_ptr<JobPeers> peers;
  };

  Status OpenMixed(const PeersKey& key, JobPeers* peers, LocalMemory* local) const;

  rdma::Device* const device_;
  const rdma::DeviceOptions options_;
  Clock* const clock_;
  const LocalMemory local_;
  const std::shared_ptr<ArenaBlockSource> blocks_ = std::make_shared<ArenaBlockPool>(kKeptBytes);
  Mutex mutex_;
  std::list<Entry> entries_ GUARDED_BY(mutex_);  ///< Most recently used first.
};

}  // namespace nacre::pool
