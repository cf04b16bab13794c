#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "pool/background.h"
#include "pool/connect/client_context.h"
#include "pool/wire/versions.h"
#include "rdma/transport.h"
#include "table/format/placement.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/periodic_task.h"
#include "util/uri.h"

namespace nacre::pool {

class Databases;
class MaintenanceWatch;
class NodeRequests;
class PointSessions;
struct Fabric;

/// This process's access to the nodes of a pool: who they are, whether they live, and the parts
/// that do things with them.
///
/// Thread safety: all methods may be called from many threads at once.
///
/// A node whose connection breaks is reconnected on next use, with back-off, and is what it was.
/// One that comes back with another instance id, or without the databases of this client, has lost
/// what it held: it stays lost, and what answers at its address joins the pool as a new, empty
/// node, with the next NodeId. So a NodeId means the same memory for ever.
class PoolClient {
 public:
  /// `device` is used for everything and not owned.
  static Status Connect(const Uri& pool, const PoolClientOptions& options, rdma::Device* device,
                        Clock* clock, std::unique_ptr<PoolClient>* client);
  ~PoolClient();
  PoolClient(const PoolClient&) = delete;
  PoolClient& operator=(const PoolClient&) = delete;

  // ---- The parts, which live as long as the client ------------------------------------------

  Fabric* fabric() const { return fabric_.get(); }            ///< pool/connect/fabric.h
  NodeRequests* requests() const { return requests_.get(); }  ///< pool/connect/node_requests.h
  Databases* databases() const { return databases_.get(); }   ///< pool/databases.h
  PointSessions* point_sessions() const { return sessions_.get(); }  ///< For PointReaders.

  TaskThreads* threads() { return &background_.threads; }
  /// Where a periodic task of a database works: on one of Background's executors.
  PeriodicTask::Where PeriodicOn(const std::unique_ptr<Executor> Background::*executor) {
    return {&background_.threads, (background_.*executor).get()};
  }
  rdma::Device* device() const;
  Clock* clock() const;
  const PoolClientOptions& options() const;
  /// "tcp", "mixed": what the URI of the pool begins with.
  const std::string& scheme() const { return scheme_; }

  // ---- The nodes ----------------------------------------------------------------------------

  /// Nodes so far, lost ones included; grows as nodes join.
  int node_count() const;
  /// "shm:/run/n0.sock".
  const std::string& node_address(NodeId node) const;
  /// False once the node is known to be lost. One relaxed load.
  bool alive(NodeId node) const;
  /// False as well while it is slow, or in maintenance: see pool/connect/pool_pace.h.
  bool prompt(NodeId node) const;
  int alive_count() const;
  /// Grows when a node becomes slow, or no longer is.
  uint64_t pace_changes() const;
  /// Reads that were asked of other nodes since they were late.
  uint64_t hedged_reads() const;
  /// Jobs that were given up since their node became slow.
  uint64_t jobs_left() const;
  /// For each node the first node of its failure domain: itself if it has no label. Nodes of one
  /// domain may fail together.
  std::vector<NodeId> Domains() const;
  /// Domains that have a node which is alive, or, with `of_all`, any node.
  int domain_count(bool of_all = false) const;
  /// Domains that have a node which is alive, not slow, and not in maintenance.
  int prompt_domain_count() const;
  /// 0 as long as the node was never connected.
  uint64_t region_bytes(NodeId node) const;
  uint64_t instance_id(NodeId node) const;
  /// The process that serves the node's memory, as it was reached last: a number drawn when it
  /// starts. 0 as long as the node was never connected. A node whose memory outlives its process
  /// has one instance id, and a number for each start.
  uint32_t start_id(NodeId node) const;
  Status Ping(NodeId node);

  /// Features that are on in the pool, as far as this client has heard: what is stored may use
  /// them. They are never turned off.
  FeatureSet features_on() const;
  /// The client does without nodes that do not know all that it has heard to be on.
  void HearFeatures(FeatureSet on);

  /// Has this client do without nodes in maintenance where others serve, from a second after each
  /// order on: for clients that own no database, as owners see to it themselves. Idempotent.
  void WatchMaintenance() EXCLUDES(watch_mutex_);

  // ---- Nodes that join and leave ------------------------------------------------------------

  /// Has the node at `address` ("shm:/run/n6.sock", with the scheme of the pool) join when it can
  /// be reached; returns at once. Nothing happens if it is in the pool or wanted already.
  void AddNode(const std::string& address);
  /// Has the nodes join that were added to the pool (Directions::added_addresses), as those that
  /// are reached know it, and waits until they have or could not be reached once, a second at most.
  void JoinAddedNodes();
  /// `NoSpace` as long as there is a node that is wanted and for which there is no number, or no
  /// connection, any more.
  Status JoinRefusal() const;
  /// Grows whenever a node joins or is lost: owners then publish their roots again, so that the
  /// members are nodes that live.
  uint64_t membership_changes() const;
  /// Grows before this client ends a lifeline: the node takes that for its end, and lets others in
  /// at once. As long as this client lives.
  const std::atomic<uint64_t>& hang_ups() const;

 private:
  explicit PoolClient(std::string scheme);

  /// Domains that have a node for which `counts` answers true.
  int CountDomains(const std::function<bool(NodeId)>& counts) const;

  const std::string scheme_;
  Background background_;           ///< Ends last.
  std::unique_ptr<Fabric> fabric_;  ///< Ends after those that use it.
  std::unique_ptr<NodeRequests> requests_;
  std::unique_ptr<Databases> databases_;
  std::unique_ptr<PointSessions> sessions_;
  Mutex watch_mutex_;
  std::unique_ptr<MaintenanceWatch> watch_ GUARDED_BY(watch_mutex_);  ///< Null: none was wanted.
};

}  // namespace nacre::pool
