#pragma once

#include <memory>
#include <string>

#include "nacre/pool.h"
#include "pool/connect/peer_device.h"
#include "pool/pool_client.h"
#include "rdma/transport.h"

namespace nacre::pool {

/// What `Pool::Open` makes: the device, the client and, for an embedded pool, the nodes.
class PoolImpl : public Pool {
 public:
  virtual PoolClient* client() = 0;
  virtual Clock* clock() = 0;
  /// Whether its nodes are in this process, and end with it.
  virtual bool embedded() const = 0;
  /// What protects its nodes also protects what its clients ask of one another.
  virtual const PeerSecurity& peer_security() const = 0;
  /// For tests of failures in an embedded pool: stops node `node` as if its process had died.
  virtual void KillEmbeddedNode(NodeId node) = 0;
  /// Starts one more node of an embedded pool, empty, which joins soon.
  virtual Status AddEmbeddedNode() = 0;
};

struct PoolOpenOptions {
  std::chrono::milliseconds operation_timeout{10'000};
  uint64_t slab_bytes = 64 << 20;
  int node_workers = 1;  ///< Compaction threads of each embedded node.
  /// Domains of embedded nodes; absent: domains of their own.
  std::vector<std::string> node_domains{};
  PoolOptions pool{};
  ProtocolSupport protocol{};  ///< What the client speaks and knows.
};

Status OpenPool(const std::string& uri, const PoolOpenOptions& options, Clock* clock,
                std::shared_ptr<PoolImpl>* pool);

}  // namespace nacre::pool
