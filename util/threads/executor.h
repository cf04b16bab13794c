#pragma once

#include <functional>
#include <memory>
#include <string>

namespace nacre {

/// Runs tasks on threads of its own. Passed to whatever has background work, so that a simulation
/// can schedule it.
///
/// The queue has no bound of its own, so that Schedule never blocks and may be called by a task:
/// callers bound how many of their tasks are queued or running.
/// Thread safety: all methods may be called from many threads at once.
class Executor {
 public:
  /// Runs the tasks that were accepted, and those that they schedule, then joins.
  virtual ~Executor() = default;
  /// Tasks start in the order of their calls. They must not throw.
  virtual void Schedule(std::function<void()> task) = 0;
  /// Has at least so many threads from now on.
  virtual void Grow(int threads) = 0;
};

/// `threads` >= 1; `name` (cut after 15 bytes) shows in `ps` and `perf`.
std::unique_ptr<Executor> NewThreadPool(int threads, const std::string& name);

}  // namespace nacre
