#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nacre/async.h"
#include "nacre/status.h"
#include "util/mutex.h"

namespace nacre {

class AsyncDriver;

/// An operation of an AsyncDB, as that sees it.
struct DrivenOperation : AsyncOperation {
  explicit DrivenOperation(AsyncDriver* of) : driver(of) {}
  /// A thread has done its part: ends it.
  virtual void TakeResult() = 0;

  using AsyncOperation::abandoned_;
  using AsyncOperation::ended_;
  using AsyncOperation::Recycle;
  using AsyncOperation::status_;
  using AsyncOperation::waiter_;

  AsyncDriver* const driver;
};

/// What drives the operations of an AsyncDB: a coroutine that is in the executor's queue as long as
/// anything is under way. Each time it is resumed it has its turn, and takes what threads have
/// finished.
///
/// Thread safety: only code that runs on the executor may call it, but for Finished.
class AsyncDriver {
 public:
  AsyncDriver(const AsyncDriver&) = delete;
  AsyncDriver& operator=(const AsyncDriver&) = delete;

  /// Ends an operation that was begun.
  void End(DrivenOperation* operation, Status status);
  /// From any thread: the driver takes its result.
  void Finished(DrivenOperation* operation) EXCLUDES(mutex_);

 protected:
  /// `executor` outlives it.
  explicit AsyncDriver(AsyncExecutor* executor);
  /// Nothing is under way any more.
  ~AsyncDriver();

  virtual void Turn() = 0;
  /// Nothing is under way for the moment.
  virtual void Rest() {}

  /// One more operation is under way.
  void Begin() { ++under_way_; }
  /// One that was begun is part of another, and has ended.
  void EndPart() { --under_way_; }
  /// Has the driver run, if it does not.
  void Wake() {
    if (!driving_) [[unlikely]]
      StartDriving();
  }
  void TakeFinished() {
    if (any_finished_.load(std::memory_order_relaxed)) [[unlikely]]
      TakeAllFinished();
  }
  size_t operations() const { return under_way_; }

 private:
  /// A coroutine that only this resumes, or has the executor resume.
  struct Coroutine {
    struct promise_type;
    std::coroutine_handle<> handle;
  };
  struct NextTurn;

  Coroutine Drive();
  void StartDriving();
  void TakeAllFinished() EXCLUDES(mutex_);

  AsyncExecutor* const executor_;
  size_t under_way_ = 0;
  bool driving_ = false;  ///< The coroutine is in the executor's queue.

  std::atomic<bool> any_finished_{false};
  Mutex mutex_;
  std::vector<DrivenOperation*> finished_ GUARDED_BY(mutex_);
  const Coroutine coroutine_;
};

}  // namespace nacre
