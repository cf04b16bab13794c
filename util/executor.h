#pragma once

#include <functional>
#include <memory>
#include <string>

namespace nacre {

/// Runs tasks on threads of its own. Passed to whatever has background work, so that a simulation
/// can schedule it.
/// Thread safety: all methods may be called from many threads at once.
class Executor {
 public:
  /// Runs the tasks that were accepted, then joins.
  virtual ~Executor() = default;
  virtual void Schedule(std::function<void()> task) = 0;
};

/// `threads` >= 1; `name` (at most 15 bytes) shows in `ps` and `perf`.
std::unique_ptr<Executor> NewThreadPool(int threads, const std::string& name);

}  // namespace nacre
