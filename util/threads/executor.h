#pragma once

#include <functional>

namespace nacre {

/// Runs tasks on other threads: see TaskThreads::NewExecutor.
///
/// The queue has no bound of its own, so that Schedule never blocks and may be called by a task:
/// callers bound how many of their tasks are queued or running.
/// Thread safety: all methods may be called from many threads at once.
class Executor {
 public:
  /// Returns when the tasks that were accepted, and those that they schedule, have ended.
  virtual ~Executor() = default;
  /// Tasks start in the order of their calls. They must not throw.
  virtual void Schedule(std::function<void()> task) = 0;
  /// Runs at least so many tasks at once from now on.
  virtual void Grow(int threads) = 0;
};

}  // namespace nacre
