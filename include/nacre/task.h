#pragma once

#include <cassert>
#include <coroutine>
#include <deque>
#include <exception>
#include <optional>
#include <utility>

#include "nacre/async.h"

namespace nacre {

namespace internal {

/// The parts common to tasks of all types: they begin when they are awaited, and resume the
/// awaiting coroutine when they end.
struct TaskPromiseBase {
  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) noexcept {
      return ended.promise().waiter;
    }
    void await_resume() noexcept {}
  };

  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { exception = std::current_exception(); }

  std::coroutine_handle<> waiter = std::noop_coroutine();
  std::exception_ptr exception;
};

}  // namespace internal

/// A coroutine that gives a `T`: `T value = co_await task`. It begins when it is awaited, or by
/// `RunLoop::Spawn`. An exception that leaves it goes to the awaiting coroutine. Applications may
/// use such a type of their own instead.
template <typename T>
class [[nodiscard]] Task {
 public:
  struct promise_type : internal::TaskPromiseBase {
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    template <typename U>
    void return_value(U&& result) {
      value.emplace(std::forward<U>(result));
    }
    std::optional<T> value;
  };

  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
    coroutine_.promise().waiter = waiter;
    return coroutine_;
  }
  T await_resume() {
    promise_type& promise = coroutine_.promise();
    if (promise.exception) std::rethrow_exception(promise.exception);
    return std::move(*promise.value);
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  std::coroutine_handle<promise_type> coroutine_;
};

template <>
class [[nodiscard]] Task<void> {
 public:
  struct promise_type : internal::TaskPromiseBase {
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    void return_void() {}
  };

  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
    coroutine_.promise().waiter = waiter;
    return coroutine_;
  }
  void await_resume() {
    if (coroutine_.promise().exception) std::rethrow_exception(coroutine_.promise().exception);
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  std::coroutine_handle<promise_type> coroutine_;
};

/// An executor of the calling thread: runs what was spawned until all of it has ended.
///
///     nacre::RunLoop loop;
///     std::unique_ptr<nacre::AsyncDB> async;
///     db->NewAsyncDB(&loop, &async);
///     for (...) loop.Spawn(Worker(async.get(), ...));  // Task<void> Worker(AsyncDB*, ...)
///     loop.Run();
///
/// Thread safety: none.
class RunLoop final : public AsyncExecutor {
 public:
  void Schedule(std::coroutine_handle<> coroutine) override { ready_.push_back(coroutine); }

  /// Has `task` begin with the next Run, or soon when that is under way. An exception that leaves
  /// it comes out of Run.
  void Spawn(Task<void> task) {
    ++running_;
    ready_.push_back(Own(this, std::move(task)).coroutine);
  }

  /// Returns when all that was spawned has ended, or throws the first exception of it then.
  void Run() {
    while (running_ > 0) {
      assert(!ready_.empty() && "a task awaits what this loop does not resume");
      const std::coroutine_handle<> next = ready_.front();
      ready_.pop_front();
      next.resume();
    }
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  /// A coroutine that is not awaited, and that ends by itself.
  struct Detached {
    struct promise_type {
      Detached get_return_object() {
        return {std::coroutine_handle<promise_type>::from_promise(*this)};
      }
      std::suspend_always initial_suspend() noexcept { return {}; }
      std::suspend_never final_suspend() noexcept { return {}; }
      void return_void() {}
      void unhandled_exception() noexcept {}  // Own lets none out.
    };
    std::coroutine_handle<> coroutine;
  };

  static Detached Own(RunLoop* loop, Task<void> task) {
    try {
      co_await task;
    } catch (...) {
      if (!loop->failure_) loop->failure_ = std::current_exception();
    }
    --loop->running_;
  }

  std::deque<std::coroutine_handle<>> ready_;
  size_t running_ = 0;
  std::exception_ptr failure_;
};

}  // namespace nacre
