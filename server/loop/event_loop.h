#pragma once

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "nacre/async.h"
#include "nacre/status.h"
#include "nacre/task.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::server {

/// What one thread of the server does: it resumes coroutines, looks at sockets and runs timers. It
/// is the executor of an AsyncDB. While that has anything under way the loop does not sleep, as
/// then the driver of the AsyncDB is among what is to be resumed.
///
/// Thread safety: Post, Resume and Stop may be called from any thread; everything else only by
/// what runs on the loop, or before Run.
class EventLoop final : public AsyncExecutor {
 public:
  /// Is told what epoll has found at a file.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void OnEvents(uint32_t events) = 0;
  };
  using Timer = std::pair<uint64_t, uint64_t>;  ///< When it is due, and its number.

  /// `clock` must outlive the loop.
  explicit EventLoop(Clock* clock);
  /// Run has returned.
  ~EventLoop() override;
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// `IOError` if the system has no more files.
  Status Open();
  /// Returns after Stop, once no task is under way that was spawned.
  void Run();
  void Stop();
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }

  void Schedule(std::coroutine_handle<> coroutine) override { ready_.push_back(coroutine); }
  /// Has `task` begin at once. It owns itself from then on; what it throws leaves Run.
  void Spawn(Task<void> task);
  /// Has `work` called on the loop soon.
  void Post(std::function<void()> work) EXCLUDES(mutex_);
  /// Has `work` called at the end of this turn, when all that was ready has been resumed.
  void AtTurnEnd(std::function<void()> work) { at_turn_end_.push_back(std::move(work)); }
  /// Has `coroutine` resumed on the loop soon.
  void Resume(std::coroutine_handle<> coroutine);

  /// Has `handler` told of `events` (EPOLLIN and so on) at `file`. `IOError` names the cause.
  Status Add(int file, uint32_t events, Handler* handler);
  void Change(int file, uint32_t events, Handler* handler);
  /// The handler may still be told of events that were found before; it has to stay until work that
  /// is posted now is called.
  void Remove(int file);

  Timer After(std::chrono::nanoseconds delay, std::function<void()> due);
  void Cancel(const Timer& timer) { timers_.erase(timer); }

  Clock* clock() const { return clock_; }

 private:
  struct Detached;

  Detached Own(Task<void> task);
  void RunReady();
  void TakeEvents(int timeout_ms);
  /// False if there was nothing.
  bool TakePosted() EXCLUDES(mutex_);
  void RunTurnEnd();
  /// Returns how long there is nothing to do, in milliseconds.
  int RunTimers();

  Clock* const clock_;
  int epoll_ = -1;
  int wake_ = -1;  ///< An eventfd.
  std::atomic<std::thread::id> thread_{};
  std::atomic<bool> stopping_{false};
  std::deque<std::coroutine_handle<>> ready_;
  std::vector<std::function<void()>> at_turn_end_;
  size_t tasks_ = 0;  ///< They were spawned and have not ended.
  std::map<Timer, std::function<void()>> timers_;
  uint64_t next_timer_ = 0;

  Mutex mutex_;
  std::vector<std::function<void()>> posted_ GUARDED_BY(mutex_);
};

/// `co_await Yield(loop)`: the loop goes on with this when it has turned. Loops that await many
/// tasks need it now and then: where the compiler makes no tail calls, as without optimization,
/// each task that ends without a wait leaves the stack deeper.
class Yield {
 public:
  /// So many tasks may be awaited in between.
  static constexpr size_t kTasksMax = 64;

  explicit Yield(EventLoop* loop) : loop_(loop) {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) { loop_->Schedule(waiter); }
  void await_resume() const noexcept {}

 private:
  EventLoop* const loop_;
};

/// `co_await Sleep(loop, delay)`.
class Sleep {
 public:
  Sleep(EventLoop* loop, std::chrono::nanoseconds delay) : loop_(loop), delay_(delay) {}

  bool await_ready() const noexcept { return delay_.count() <= 0; }
  void await_suspend(std::coroutine_handle<> waiter) {
    loop_->After(delay_, [waiter] { waiter.resume(); });
  }
  void await_resume() const noexcept {}

 private:
  EventLoop* const loop_;
  const std::chrono::nanoseconds delay_;
};

/// Has `work` called on the loop `there`, and goes on where it is.
///
///     OnLoop elsewhere(here, there, work);
///     co_await elsewhere;
class OnLoop {
 public:
  OnLoop(EventLoop* here, EventLoop* there, std::function<void()> work)
      : here_(here), there_(there), work_(std::move(work)) {}
  OnLoop(const OnLoop&) = delete;
  OnLoop& operator=(const OnLoop&) = delete;

  bool await_ready() {
    if (here_ == there_) work_();
    return here_ == there_;
  }
  void await_suspend(std::coroutine_handle<> waiter) {
    there_->Post([this, waiter] {
      work_();
      here_->Resume(waiter);
    });
  }
  void await_resume() const noexcept {}

 private:
  EventLoop* const here_;
  EventLoop* const there_;
  const std::function<void()> work_;
};

}  // namespace nacre::server
