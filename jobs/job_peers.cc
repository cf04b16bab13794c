#include "jobs/job_peers.h"

#include <fmt/format.h>

#include <utility>

#include "pool/connect/pool_device.h"
#include "util/uri.h"

namespace nacre::pool {

Status JobPeersCache::Get(const PeersKey& key, std::shared_ptr<JobPeers>* peers) {
  std::shared_ptr<JobPeers> evicted;  // Its connections end after the lock.
  MutexLock lock(&mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->key == key) {
      entries_.splice(entries_.begin(), entries_, entry);
      *peers = entry->peers;
      return Status::OK();
    }
  }

  Uri pool;  // Without parameters, which are about the owner's device.
  pool.scheme = key.scheme;
  const size_t prefix = key.scheme == kMixedScheme ? 0 : key.scheme.size() + 1;
  PoolClientOptions options;
  for (const JobPeer& peer : key.peers) {
    // Those between are lost to the owner, and to this client.
    for (size_t lost = pool.addresses.size(); lost <= peer.node; ++lost) {
      pool.addresses.push_back(fmt::format("(lost node {})", lost));
      options.instance_ids.push_back(kLostInstance);
    }
    if (peer.address.size() < prefix) {
      return Status::InvalidArgument(fmt::format("'{}' is no address", peer.address));
    }
    pool.addresses[peer.node] = peer.address.substr(prefix);
    options.instance_ids[peer.node] = peer.instance_id;
  }
  options.operation_timeout = key.operation_timeout;
  options.slab_bytes = key.slab_bytes;
  options.self = key.self;
  options.connect_all = false;
  options.nodes_join = false;
  auto made = std::make_shared<JobPeers>();
  made->blocks = blocks_;
  LocalMemory local = local_;
  local.node = key.self;
  rdma::Device* device = device_;
  if (pool.scheme == kMixedScheme) {
    NACRE_RETURN_IF_ERROR(OpenMixed(key, made.get(), &local));
    device = made->device.get();
  }
  NACRE_RETURN_IF_ERROR(PoolClient::Connect(pool, options, device, clock_, &made->client));
  made->store = std::make_unique<TableStore>(made->client.get(), local);
  entries_.push_front({.key = key, .peers = made});
  if (entries_.size() > kMaxPools) {
    evicted = std::move(entries_.back().peers);
    entries_.pop_back();
  }
  *peers = std::move(made);
  return Status::OK();
}

Status JobPeersCache::OpenMixed(const PeersKey& key, JobPeers* peers, LocalMemory* local) const {
  Uri pool;
  pool.scheme = key.scheme;
  for (const JobPeer& peer : key.peers) pool.addresses.push_back(peer.address);
  // What this node was started with is said of its own transport.
  rdma::DeviceOptions options = options_;
  options.parameters.clear();
  for (const auto& [name, value] : options_.parameters) {
    options.parameters[std::string(device_->scheme()) + "." + name] = value;
  }
  NACRE_RETURN_IF_ERROR(OpenPoolDevice(pool, options, clock_, &peers->device));
  NACRE_RETURN_IF_ERROR(peers->device->RegisterLocal(local->base, local->size, &peers->region));
  local->region = peers->region.get();
  return Status::OK();
}

void JobPeersCache::Clear() {
  std::list<Entry> cleared;  // Connections end after the lock.
  MutexLock lock(&mutex_);
  cleared.swap(entries_);
}

}  // namespace nacre::pool
