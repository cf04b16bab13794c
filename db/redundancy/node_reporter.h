#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pool/node_maintenance.h"
#include "pool/pool_client.h"
#include "pool/wire/database_report.h"
#include "util/mutex.h"
#include "util/threads/periodic_task.h"

namespace nacre {

/// Tells the nodes once a second how a database is, and hears from them the operators' directions,
/// and which readers its log has.
/// One small request to each node that is alive, by a thread of its own; a node that does not
/// answer costs that thread its timeout, and delays no other.
///
/// Thread safety: all methods may be called from many threads at once, Stop by one.
class NodeReporter {
 public:
  struct Calls {
    std::function<pool::DatabaseReport()> make_report;  ///< For each round.
    std::function<void()> directions_changed;           ///< After directions() became another.
    /// After each round: the readers of the log that nodes have told of, some several times.
    std::function<void(const std::vector<pool::LogReader>&)> heard_of_readers;
  };
  /// The reporter's thread makes the calls. `client` is not owned.
  NodeReporter(pool::PoolClient* client, Calls calls)
      : client_(client), calls_(std::move(calls)), maintenance_(client) {}
  /// As Stop.
  ~NodeReporter() = default;
  NodeReporter(const NodeReporter&) = delete;
  NodeReporter& operator=(const NodeReporter&) = delete;

  void Start();
  /// Waits for the round that is under way. Idempotent.
  void Stop() { task_.Stop(); }

  /// The latest that any node has told.
  pool::Directions directions() const EXCLUDES(mutex_);
  /// Whether all fragments are to leave the node. A node that was started anew is not draining.
  bool draining(NodeId node) const EXCLUDES(mutex_);
  /// Which nodes may be away for a while.
  const pool::NodeMaintenance& maintenance() const { return maintenance_; }
  /// Whether all nodes that were alive have been asked once.
  bool has_asked() const { return has_asked_.load(std::memory_order_acquire); }

 private:
  static constexpr std::chrono::seconds kPeriod{1};

  void ReportOnce() EXCLUDES(mutex_);

  pool::PoolClient* const client_;
  const Calls calls_;
  mutable Mutex mutex_;
  pool::Directions directions_ GUARDED_BY(mutex_);
  pool::NodeMaintenance maintenance_;
  std::atomic<bool> has_asked_{false};  ///< Release by the thread: pairs with has_asked().
  PeriodicTask task_;
};

}  // namespace nacre
