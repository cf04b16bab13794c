#include "server/loop/event_loop.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace nacre::server {
namespace {

/// The loop looks at its inbox at least so often, whatever happens.
constexpr int kSleepMsMax = 1000;
/// So many times what is ready is resumed in one turn, if more becomes ready by that.
constexpr int kRoundsMax = 8;

Status LoopError(const char* what) {
  return Status::IOError(std::string(what) + ": " + std::generic_category().message(errno));
}

}  // namespace

/// A coroutine that is not awaited, and ends by itself.
struct EventLoop::Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }  // It leaves Run.
  };
};

EventLoop::EventLoop(Clock* clock) : clock_(clock) {}

EventLoop::~EventLoop() {
  if (wake_ >= 0) ::close(wake_);
  if (epoll_ >= 0) ::close(epoll_);
}

Status EventLoop::Open() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return LoopError("epoll_create1");
  wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_ < 0) return LoopError("eventfd");
  return Add(wake_, EPOLLIN, nullptr);
}

EventLoop::Detached EventLoop::Own(Task<void> task) {
  co_await task;
  --tasks_;
}

void EventLoop::Spawn(Task<void> task) {
  ++tasks_;
  Own(std::move(task));
}

void EventLoop::Post(std::function<void()> work) {
  bool wake = false;
  {
    const MutexLock lock(&mutex_);
    wake = posted_.empty();
    posted_.push_back(std::move(work));
  }
  const uint64_t one = 1;
  // It fails only if the loop is woken already.
  if (wake && ::write(wake_, &one, sizeof one) < 0) return;
}

void EventLoop::Resume(std::coroutine_handle<> coroutine) {
  if (thread_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
    Schedule(coroutine);
  } else {
    Post([coroutine] { coroutine.resume(); });
  }
}

Status EventLoop::Add(int file, uint32_t events, Handler* handler) {
  epoll_event event{.events = events, .data = {.ptr = handler}};
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &event) == 0 ? Status::OK()
                                                               : LoopError("epoll_ctl");
}

void EventLoop::Change(int file, uint32_t events, Handler* handler) {
  epoll_event event{.events = events, .data = {.ptr = handler}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, file, &event);
}

void EventLoop::Remove(int file) { ::epoll_ctl(epoll_, EPOLL_CTL_DEL, file, nullptr); }

EventLoop::Timer EventLoop::After(std::chrono::nanoseconds delay, std::function<void()> due) {
  const Timer timer{clock_->NowNanos() + Nanos(std::max(delay, std::chrono::nanoseconds(0))),
                    next_timer_++};
  timers_.emplace(timer, std::move(due));
  return timer;
}

void EventLoop::Stop() {
  stopping_.store(true, std::memory_order_relaxed);
  Post([] {});
}

void EventLoop::Run() {
  thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  while (!stopping_.load(std::memory_order_relaxed) || tasks_ > 0 || !ready_.empty() ||
         !at_turn_end_.empty()) {
    // What needs no more than memory goes through all its steps before the sockets are looked at.
    for (int i = 0; i < kRoundsMax; ++i) {
      RunReady();
      if (ready_.size() <= 1) break;
    }
    // Before the answers go out: what these have woken comes before what clients send then.
    TakePosted();
    RunTurnEnd();
    const int rest_ms = RunTimers();
    const bool ends = stopping_.load(std::memory_order_relaxed) && tasks_ == 0;
    TakeEvents(ready_.empty() && at_turn_end_.empty() && !ends ? rest_ms : 0);
  }
  // What was posted may keep connections.
  while (TakePosted()) continue;
}

void EventLoop::RunTurnEnd() {
  // Work may bring more work, for the end of the next turn.
  std::vector<std::function<void()>> works;
  works.swap(at_turn_end_);
  for (const std::function<void()>& work : works) work();
}

void EventLoop::RunReady() {
  // What these schedule comes in the next round.
  const size_t count = ready_.size();
  for (size_t i = 0; i < count; ++i) {
    const std::coroutine_handle<> next = ready_.front();
    ready_.pop_front();
    next.resume();
  }
  // Only the driver of the AsyncDB is left, which waits for others: these may need the processor.
  if (count == 1 && ready_.size() == 1) ::sched_yield();
}

int EventLoop::RunTimers() {
  while (!timers_.empty()) {
    const auto first = timers_.begin();
    const uint64_t now = clock_->NowNanos();
    if (first->first.first > now) {
      const uint64_t rest_ms = (first->first.first - now) / 1'000'000 + 1;
      return static_cast<int>(std::min<uint64_t>(rest_ms, kSleepMsMax));
    }
    const std::function<void()> due = std::move(first->second);
    timers_.erase(first);
    due();
  }
  return kSleepMsMax;
}

void EventLoop::TakeEvents(int timeout_ms) {
  std::array<epoll_event, 128> events;
  const int found =
      ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout_ms);
  for (int i = 0; i < found; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.ptr != nullptr) {
      static_cast<Handler*>(event.data.ptr)->OnEvents(event.events);
      continue;
    }
    uint64_t count = 0;
    if (::read(wake_, &count, sizeof count) < 0) continue;  // Another look has taken it.
  }
}

bool EventLoop::TakePosted() {
  std::vector<std::function<void()>> posted;
  {
    const MutexLock lock(&mutex_);
    posted.swap(posted_);
  }
  for (const std::function<void()>& work : posted) work();
  return !posted.empty();
}

}  // namespace nacre::server
