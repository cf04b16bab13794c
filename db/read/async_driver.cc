#include "db/read/async_driver.h"

#include <cassert>
#include <utility>

namespace nacre {

struct AsyncDriver::Coroutine::promise_type {
  Coroutine get_return_object() {
    return {std::coroutine_handle<promise_type>::from_promise(*this)};
  }
  std::suspend_always initial_suspend() noexcept { return {}; }
  std::suspend_always final_suspend() noexcept { return {}; }
  void return_void() {}
  void unhandled_exception() noexcept {}  // Nothing throws.
};

struct AsyncDriver::NextTurn {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> driver) const {
    // Without work it is scheduled by Wake.
    if (async->driving_) async->executor_->Schedule(driver);
  }
  void await_resume() const noexcept {}

  AsyncDriver* async;
};

AsyncDriver::AsyncDriver(AsyncExecutor* executor) : executor_(executor), coroutine_(Drive()) {}

AsyncDriver::~AsyncDriver() {
  assert(under_way_ == 0 && "operations are under way");
  coroutine_.handle.destroy();
}

AsyncDriver::Coroutine AsyncDriver::Drive() {
  for (;;) {
    Turn();
    driving_ = under_way_ > 0;
    if (!driving_) Rest();
    co_await NextTurn{this};
  }
}

void AsyncDriver::StartDriving() {
  driving_ = true;
  executor_->Schedule(coroutine_.handle);
}

void AsyncDriver::End(DrivenOperation* operation, Status status) {
  --under_way_;
  if (operation->abandoned_) {
    operation->Recycle();
    return;
  }
  operation->status_ = std::move(status);
  operation->ended_ = true;
  if (operation->waiter_) executor_->Schedule(operation->waiter_);
}

void AsyncDriver::Finished(DrivenOperation* operation) {
  MutexLock lock(&mutex_);
  finished_.push_back(operation);
  any_finished_.store(true, std::memory_order_relaxed);  // A thread that sees it takes the lock.
}

void AsyncDriver::TakeAllFinished() {
  std::vector<DrivenOperation*> finished;
  {
    MutexLock lock(&mutex_);
    finished.swap(finished_);
    any_finished_.store(false, std::memory_order_relaxed);
  }
  for (DrivenOperation* const operation : finished) operation->TakeResult();
}

}  // namespace nacre
