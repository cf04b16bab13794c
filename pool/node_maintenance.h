#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pool/pool_client.h"
#include "pool/wire/database_report.h"
#include "table/format/placement.h"
#include "util/mutex.h"
#include "util/threads/periodic_task.h"

namespace nacre::pool {

/// Which nodes of a pool are in maintenance, by the latest directions that a client has heard.
///
/// A node is so until its time is up by this client's clock, until it is started anew, or until it
/// is lost for good (its memory did not come back). The latest version of the directions holds; of
/// several words of one version, the one that ends earliest.
///
/// Thread safety: all methods may be called from many threads at once.
class NodeMaintenance {
 public:
  /// `client` outlives this.
  explicit NodeMaintenance(const PoolClient* client) : client_(client) {}

  void Hear(const Directions& told) EXCLUDES(mutex_);
  bool Holds(NodeId node) const EXCLUDES(mutex_);
  /// Whether it was started anew within `kSettles`, as far as calls of Holds have seen.
  bool Returned(NodeId node) const EXCLUDES(mutex_);
  /// A client may take a node that came back for down once more, when it meets a connection to what
  /// ran there before.
  static constexpr std::chrono::seconds kSettles{10};

 private:
  struct Order {
    uint64_t instance_id = 0;
    uint32_t start_id = 0;
    uint64_t until_nanos = 0;
  };

  const PoolClient* const client_;
  mutable Mutex mutex_;
  uint64_t version_ GUARDED_BY(mutex_) = 0;
  std::vector<Order> orders_ GUARDED_BY(mutex_);
  /// When nodes were first seen to run again, by instance id.
  mutable std::map<uint64_t, uint64_t> returned_ GUARDED_BY(mutex_);
};

/// Has the client do without those of its nodes that `maintenance` holds, where others serve. To be
/// called again and again, as orders come and end.
void KeepClearOf(const NodeMaintenance& maintenance, PoolClient* client);

/// Asks one node a second for the directions, by a task of the client's threads, and has the client
/// keep clear of nodes in maintenance: for clients that own no database, as owners hear it anyway.
///
/// Thread safety: Start and Stop from one thread.
class MaintenanceWatch {
 public:
  /// `client` outlives this.
  explicit MaintenanceWatch(PoolClient* client) : client_(client), maintenance_(client) {}
  ~MaintenanceWatch() { Stop(); }
  MaintenanceWatch(const MaintenanceWatch&) = delete;
  MaintenanceWatch& operator=(const MaintenanceWatch&) = delete;

  void Start();
  /// Waits for what is under way. Idempotent.
  void Stop() { task_.Stop(); }

 private:
  static constexpr std::chrono::seconds kPeriod{1};

  void Look();

  PoolClient* const client_;
  NodeMaintenance maintenance_;
  size_t next_ = 0;  ///< Nodes are asked in turn. Only the task uses this.
  PeriodicTask task_;
};

}  // namespace nacre::pool
