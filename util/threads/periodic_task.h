#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "util/threads/executor.h"
#include "util/threads/task_threads.h"

namespace nacre {

/// Does the same piece of work again and again, with a rest after each time, in which it holds no
/// thread.
///
/// Thread safety: all methods may be called from many threads at once, save Start and Stop, which
/// one thread calls.
class PeriodicTask {
 public:
  enum class Begin : uint8_t { kWithWork, kWithRest };

  PeriodicTask();
  ~PeriodicTask() { Stop(); }
  PeriodicTask(const PeriodicTask&) = delete;
  PeriodicTask& operator=(const PeriodicTask&) = delete;

  struct Where {
    TaskThreads* threads = nullptr;  ///< Outlives this.
    Executor* executor = nullptr;    ///< One that they run; null: their ticks.
  };
  /// `name` (cut after 15 bytes) is that of the thread meanwhile. What `work` throws is dropped: a
  /// lack of memory may be over the next time.
  void Start(const Where& where, const std::string& name, std::chrono::nanoseconds rest,
             Begin begin, std::function<void()> work);
  /// Waits for the work that is under way. Idempotent; without Start it does nothing.
  void Stop();
  /// Ends the rest that is under way; where the work is, it is done once more after it.
  void Wake();
  /// Whether Stop was called: long work looks at it.
  bool stopping() const;

 private:
  class State;

  /// Timers and executors may have it for a while after the end.
  const std::shared_ptr<State> state_;
};

}  // namespace nacre
