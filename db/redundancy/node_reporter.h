#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pool/pool_client.h"
#include "pool/wire/database_report.h"
#include "util/mutex.h"
#include "util/threads/periodic_task.h"

namespace nacre {

/// Tells the nodes once a second how a database is, and hears from them the operators' directions.
/// One small request to each node that is alive, by a thread of its own; a node that does not
/// answer costs that thread its timeout, and delays no other.
///
/// Thread safety: all methods may be called from many threads at once, Stop by one.
class NodeReporter {
 public:
  /// `make_report` is called by the reporter's thread for each round; `directions_changed` by it
  /// after directions() has become another. `client` is not owned.
  NodeReporter(pool::PoolClient* client, std::function<pool::DatabaseReport()> make_report,
               std::function<void()> directions_changed);
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

 private:
  static constexpr std::chrono::seconds kPeriod{1};

  void ReportOnce() EXCLUDES(mutex_);

  pool::PoolClient* const client_;
  const std::function<pool::DatabaseReport()> make_report_;
  const std::function<void()> directions_changed_;
  mutable Mutex mutex_;
  pool::Directions directions_ GUARDED_BY(mutex_);
  PeriodicTask task_;
};

}  // namespace nacre
