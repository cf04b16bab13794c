#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jobs/plugin_registry.h"
#include "nacre/logger.h"
#include "nacre/status.h"
#include "pool/connect/secret_file.h"
#include "pool/pool_client.h"
#include "pool/wire/node_stats.h"
#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::pool {

struct MemoryNodeOptions {
  std::string listen;  ///< "shm:/run/n0.sock"
  uint64_t region_bytes = 0;
  uint64_t slab_bytes = 64 << 20;
  /// Take all of the memory from the system at the start, in huge pages where it gives them.
  bool populate = false;
  /// Keep the memory in this file over restarts of the process; empty: it ends with the process.
  /// See region_file.h, and for what Start answers then.
  std::string region_file{};
  /// Keep it in this memory, a dax device or a file that stands for one; or empty. Not both.
  std::string region_memory{};
  bool region_reset = false;  ///< Begin empty, whatever the file or the memory holds.
  /// Nodes with the same label may fail together (a rack, a power supply): no two of them get
  /// fragments of one table. An empty label is a domain of its own. At most 255 bytes.
  std::string domain{};
  int workers = 1;              ///< Compaction threads, and as many for flushes.
  std::shared_ptr<Logger> log;  ///< May be null.
  /// What jobs can be run with; null: what is built in.
  std::shared_ptr<const PluginRegistry> plugins;
  /// What the node's device was opened with: so are those that lead to the other nodes of a mixed
  /// pool.
  rdma::DeviceOptions device;
  /// Tells clients that the region is registered in pieces of this many bytes, a power of two, as
  /// some adapters need it; 0: in one.
  uint64_t piece_bytes = 0;
  /// How much of the node's memory databases may lease; see SetQuotas.
  std::vector<SecretFile::Quota> quotas{};
  ProtocolSupport protocol{};  ///< What the node speaks and knows.
};

/// One memory node: a registered region divided into slabs, requests, and the compaction service.
///
/// Thread safety: Start and Stop from one thread; stats and SetQuotas from any.
class MemoryNode {
 public:
  /// `InvalidArgument` names the option that is out of range; `NoSpace` if the region is larger
  /// than the memory of this machine.
  static Status Start(const MemoryNodeOptions& options, rdma::Device* device, Clock* clock,
                      std::unique_ptr<MemoryNode>* node);
  /// As Stop.
  ~MemoryNode();

  /// Refuses new requests, aborts running jobs, closes connections, frees the region. Idempotent.
  void Stop();
  /// As if the process had died: no answers to what is under way, then all connections end.
  void Kill();

  const std::string& address() const;
  NodeStats stats() const;
  /// From now on a lease fails by `NoSpace`, naming the quota, that would have the databases with
  /// such names hold more of this node's memory together than that. What they have, they keep.
  void SetQuotas(std::vector<SecretFile::Quota> quotas);

 private:
  class Rep;
  MemoryNode();
  std::unique_ptr<Rep> rep_;
};

}  // namespace nacre::pool
