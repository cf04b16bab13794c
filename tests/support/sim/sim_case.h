#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ctl/database_view.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "tests/support/sim/sim_cluster.h"
#include "tests/support/sim/sim_scheduler.h"

namespace nacre::sim {

/// Some nodes, and processes that own a database, or follow it. Lives until the simulation's
/// process ends.
class Case {
 public:
  Case(Scheduler* scheduler, const ClusterOptions& options)
      : scheduler_(scheduler), cluster_(scheduler, options) {}

  Cluster& cluster() { return cluster_; }
  Options DatabaseOptions();
  ProcessId NewProcess(const std::string& name) { return scheduler_->NewProcess(name); }
  /// Has a thread of the process do it, and waits for its end.
  void In(ProcessId process, const std::function<void()>& body);
  void Await(const char* what, const std::function<bool()>& done);
  void Fail(const std::string& why) { scheduler_->Fail(why); }
  void Expect(bool holds, const std::string& why) {
    if (!holds) Fail(why);
  }
  void Expect(const Status& status) { Expect(status.ok(), status.ToString()); }

  void CutOff(ProcessId process, size_t node);
  void CutOffFromAll(ProcessId process);
  void Heal() { cluster_.network().UnblockAll(); }
  /// So many nodes join, and owners are told.
  void AddNodes(size_t count);
  /// The same; this process does not reach them.
  void AddNodesCutOffFrom(ProcessId process, size_t count);
  /// The owner is to move what is on it elsewhere.
  void Drain(size_t node);

  Status WithPool(const std::function<Status(pool::PoolClient*)>& body);
  /// Selects some of the database's extents.
  using Extents = std::function<std::vector<ExtentAddr>(const ctl::DatabaseView&)>;
  /// On which nodes the database has these, in order; empty if it cannot be seen now.
  std::vector<size_t> NodesOf(const Extents& extents);
  std::vector<size_t> ManifestNodes();
  /// The nodes of the first segment.
  std::vector<size_t> LogNodes();
  /// How many nodes the root names; 0 while that changes, or is unknown.
  size_t RootMembers();
  /// Returns when each database would survive the loss of so many more nodes. Fails if that does
  /// not come within 20 s.
  void AwaitSpare(int nodes);
  /// Flips a bit in each `step` bytes of those of the extents that lie on `node`.
  void Damage(size_t node, uint64_t step, const Extents& extents);

 private:
  /// Tells owners of the nodes from `first` on.
  void Announce(size_t first);

  Scheduler* const scheduler_;
  Cluster cluster_;
};

/// A database whose owner has written "before" to "key", and a follower of it.
struct FollowedDatabase {
  explicit FollowedDatabase(Case* c);

  const ProcessId owner;
  const ProcessId follower;
  std::unique_ptr<DB> db;
  std::unique_ptr<DB> following;
};

/// Tells `tell` for some seeds, with so many nodes. It gives what each came to; a seed that fails
/// is a failure of the test.
using Telling = std::function<std::string(Scheduler*, Case*)>;
std::vector<std::string> Tell(const Telling& tell, size_t nodes);
/// For so many seeds, of such a cluster. NACRE_CASE_SEED names one that is told alone, with its
/// event log; with NACRE_CASE_ALL=1 a seed that fails does not end the test; NACRE_CASE_SEEDS is
/// another number of seeds, and NACRE_CASE_FIRST the first of them.
std::vector<std::string> Tell(const Telling& tell, const ClusterOptions& options, uint64_t seeds);

}  // namespace nacre::sim
