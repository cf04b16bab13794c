#pragma once

#include <coroutine>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "server/loop/event_loop.h"
#include "util/threads/executor.h"
#include "util/threads/task_threads.h"

namespace nacre::server {

/// Threads for what blocks: walks through many rows, and changes of the database's families. The
/// tasks that wait are bounded by the connections and what each may have under way.
///
/// Thread safety: all methods may be called from many threads at once.
class WorkerPool {
 public:
  explicit WorkerPool(int threads) : executor_(threads_.NewExecutor(threads, "nacre-work")) {}

  void Run(std::function<void()> task) { executor_->Schedule(std::move(task)); }

 private:
  TaskThreads threads_;
  std::unique_ptr<Executor> executor_;
};

/// A worker calls `work`, which must not throw; then the coroutine goes on, on its loop.
///
///     Offload offload(loop, workers, work);
///     co_await offload;
class Offload {
 public:
  Offload(EventLoop* loop, WorkerPool* workers, std::function<void()> work)
      : loop_(loop), workers_(workers), work_(std::move(work)) {}
  Offload(const Offload&) = delete;
  Offload& operator=(const Offload&) = delete;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    workers_->Run([this, waiter] {
      work_();
      // The coroutine may go on, and this object be gone, as soon as it is posted.
      loop_->Resume(waiter);
    });
  }
  void await_resume() const noexcept {}

 private:
  EventLoop* const loop_;
  WorkerPool* const workers_;
  const std::function<void()> work_;
};

}  // namespace nacre::server
