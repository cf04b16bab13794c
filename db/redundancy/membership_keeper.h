#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "db/context/node_states.h"
#include "util/clock.h"
#include "util/threads/periodic_task.h"

namespace nacre {

/// Has an open database follow its nodes, by a task of its own: nothing else that the database
/// does (a repair that its limit stretches over hours) delays that, only the looks of other
/// databases, of which a few run at a time. So the root names the nodes that are there, and
/// manifest and log leave those that are not, soon after each change.
///
/// Thread safety: all methods may be called from many threads at once, save Start and Stop.
class MembershipKeeper {
 public:
  /// All of them are called by the task, one at a time.
  struct Database {
    Clock* clock = nullptr;
    PeriodicTask::Where where;
    std::function<NodeStates()> look;
    /// The nodes are not as they were at the look before; `before` is empty at first.
    std::function<void(const NodeStates& before, const NodeStates& now)> changed;
    /// At each look.
    std::function<void()> follow;
    /// After a change, and once a second: what was made meanwhile may lie on a node that was lost.
    std::function<void()> leave_nodes;
  };

  explicit MembershipKeeper(Database database) : database_(std::move(database)) {}
  ~MembershipKeeper() { Stop(); }
  MembershipKeeper(const MembershipKeeper&) = delete;
  MembershipKeeper& operator=(const MembershipKeeper&) = delete;

  void Start();
  /// Waits for what is under way. Idempotent.
  void Stop() { task_.Stop(); }
  /// Has the task look now.
  void Wake() { task_.Wake(); }

  /// How often the nodes have changed; `changed` has returned for each of these changes. Acquire:
  /// pairs with the task's release.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

 private:
  /// How soon a change of the nodes is noticed.
  static constexpr std::chrono::milliseconds kTick{20};
  static constexpr std::chrono::seconds kLookAround{1};

  void Look();

  const Database database_;
  std::atomic<uint64_t> changes_{0};
  NodeStates nodes_;  ///< Only the task uses this, and what follows.
  uint64_t look_around_at_nanos_ = 0;
  PeriodicTask task_;
};

}  // namespace nacre
