#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "util/mutex.h"
#include "util/threads/executor.h"
#include "util/threads/thread.h"

namespace nacre {

/// Threads that the databases of a process share: a task that is to begin gets a thread that has
/// nothing to do, or else a new one, so no task waits for the end of another; one that finds
/// nothing to do for some seconds ends. Databases that rest hold no threads.
///
/// Executors bound how many tasks of one kind run at once. PeriodicTask works on these threads.
///
/// Thread safety: all methods may be called from many threads at once.
class TaskThreads {
 public:
  static constexpr int kUnbounded = std::numeric_limits<int>::max();

  TaskThreads();
  /// All executors and periodic tasks of these threads have ended.
  ~TaskThreads();
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  /// An executor at most `at_once` of whose tasks run at the same time. `name` shows in `ps` while
  /// they do.
  std::unique_ptr<Executor> NewExecutor(int at_once, const std::string& name);
  /// One that runs them all.
  Executor* ticks() { return ticks_.get(); }

  /// Has `due` called from a thread of its own once the time has come (Clock::System). It must not
  /// wait for long.
  void CallAt(uint64_t nanos, std::function<void()> due) EXCLUDES(timer_mutex_);

  /// Threads that there are, and that there were at most.
  size_t count() const EXCLUDES(mutex_);
  size_t most() const EXCLUDES(mutex_);

 private:
  class SharedExecutor;

  /// Has `run` begin now. If the system has no more threads, it begins when one has become free, or
  /// std::system_error is thrown if there is none at all.
  void Run(std::function<void()> run) EXCLUDES(mutex_);
  void StartThread() REQUIRES(mutex_);
  void Work(std::list<Thread>::iterator place) EXCLUDES(mutex_);
  /// Waits a moment for an idle thread where there are many threads already.
  void AwaitIdle() EXCLUDES(mutex_);
  void RunTimers() EXCLUDES(timer_mutex_);

  /// A thread that has nothing to do.
  struct Idle {
    explicit Idle(Mutex* mutex) : called(mutex) {}
    CondVar called;
    std::function<void()> run;  ///< What it is called for.
  };

  mutable Mutex mutex_;
  CondVar rested_{&mutex_};  ///< A thread has become idle, or ended.
  /// The latest is called first, so that those that are not needed come to their end.
  std::vector<Idle*> idle_ GUARDED_BY(mutex_);
  /// For a thread that was started for it, or, if the system has no more, the next that is idle.
  std::deque<std::function<void()>> ready_ GUARDED_BY(mutex_);
  size_t most_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::list<Thread> threads_ GUARDED_BY(mutex_);
  std::list<Thread> ended_ GUARDED_BY(mutex_);  ///< To be joined.

  struct Timer {
    uint64_t nanos = 0;
    std::function<void()> due{};
    bool operator<(const Timer& other) const { return nanos > other.nanos; }  // A heap's.
  };
  Mutex timer_mutex_;
  CondVar timers_changed_{&timer_mutex_};
  std::vector<Timer> timers_ GUARDED_BY(timer_mutex_);  ///< A heap, the earliest first.
  bool timer_stopping_ GUARDED_BY(timer_mutex_) = false;
  Thread timer_thread_ GUARDED_BY(timer_mutex_);  ///< Started by the first timer.

  std::unique_ptr<Executor> ticks_;
};

}  // namespace nacre
