#include "util/threads/task_threads.h"

#include <algorithm>
#include <cassert>
#include <system_error>
#include <utility>
#include <vector>

#include "util/clock.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLinger{2000};
/// Where there are so many threads, timers give them a moment to end what they do.
constexpr size_t kUsualThreads = 8;
constexpr milliseconds kEndMoment{1};

}  // namespace

/// Tasks of one kind, in their order.
class TaskThreads::SharedExecutor final : public Executor {
 public:
  SharedExecutor(TaskThreads* threads, int at_once, std::string name)
      : threads_(threads), name_(std::move(name)), at_once_(at_once) {
    assert(at_once >= 1);
  }
  ~SharedExecutor() override {
    MutexLock lock(&mutex_);
    while (running_ > 0) ended_.Wait();
    assert(tasks_.empty());
  }

  void Schedule(std::function<void()> task) override EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
    if (running_ == at_once_) return;
    ++running_;
    try {
      threads_->Run([this] { Drain(); });
    } catch (...) {
      --running_;
      if (running_ > 0) return;  // A task that runs now is followed by it.
      tasks_.pop_back();
      throw;
    }
  }

  void Grow(int threads) override EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    at_once_ = std::max(at_once_, threads);
  }

 private:
  void Drain() EXCLUDES(mutex_) {
    Thread::NameThis(name_);
    MutexLock lock(&mutex_);
    while (!tasks_.empty()) {
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      MutexUnlock unlock(&mutex_);
      task();
      task = nullptr;  // What it captured may need the mutex to die.
    }
    --running_;
    ended_.SignalAll();
  }

  TaskThreads* const threads_;
  const std::string name_;
  Mutex mutex_;
  CondVar ended_{&mutex_};
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  int at_once_ GUARDED_BY(mutex_);
  int running_ GUARDED_BY(mutex_) = 0;  ///< Threads that take tasks.
};

TaskThreads::TaskThreads() : ticks_(NewExecutor(kUnbounded, "nacre-tick")) {}

TaskThreads::~TaskThreads() {
  Thread timer;
  {
    MutexLock lock(&timer_mutex_);
    timer_stopping_ = true;
    timers_changed_.SignalAll();
    timer = std::move(timer_thread_);
  }
  if (timer.joinable()) timer.Join();
  ticks_.reset();
  std::list<Thread> threads;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (Idle* const idle : idle_) idle->called.Signal();
    while (!threads_.empty()) rested_.Wait();
    threads.swap(ended_);
  }
  for (Thread& thread : threads) thread.Join();
}

std::unique_ptr<Executor> TaskThreads::NewExecutor(int at_once, const std::string& name) {
  return std::make_unique<SharedExecutor>(this, at_once, name);
}

void TaskThreads::Run(std::function<void()> run) {
  std::list<Thread> ended;
  {
    MutexLock lock(&mutex_);
    ended.swap(ended_);
    if (idle_.empty()) {
      ready_.push_back(std::move(run));
      StartThread();
    } else {
      Idle* const latest = idle_.back();
      idle_.pop_back();
      latest->run = std::move(run);
      latest->called.Signal();
    }
  }
  for (Thread& thread : ended) thread.Join();
}

void TaskThreads::StartThread() try {
  idle_.reserve(threads_.size() + 1);  // To become idle takes no memory.
  std::list<Thread> started(1);
  const auto place = started.begin();
  // It begins with the mutex, so it finds its place in the list.
  *place = Thread("nacre-task", [this, place] { Work(place); });
  threads_.splice(threads_.end(), started);
  most_ = std::max(most_, threads_.size());
} catch (...) {
  if (!threads_.empty()) return;
  ready_.pop_back();
  throw;
}

void TaskThreads::Work(std::list<Thread>::iterator place) {
  Idle mine(&mutex_);
  std::function<void()> run;
  MutexLock lock(&mutex_);
  for (;;) {
    if (run == nullptr && !ready_.empty()) {
      run = std::move(ready_.front());
      ready_.pop_front();
    }
    if (run != nullptr) {
      MutexUnlock unlock(&mutex_);
      run();
      run = nullptr;
      continue;
    }
    if (stopping_) break;
    idle_.push_back(&mine);
    rested_.SignalAll();
    const uint64_t start = Clock::System()->NowNanos();
    const auto linger = static_cast<uint64_t>(std::chrono::nanoseconds(kLinger).count());
    uint64_t now = start;
    while (mine.run == nullptr && !stopping_ && now < start + linger) {
      mine.called.WaitFor(std::chrono::nanoseconds(start + linger - now));
      now = Clock::System()->NowNanos();
    }
    run = std::exchange(mine.run, nullptr);
    if (run != nullptr) continue;
    std::erase(idle_, &mine);
    if (ready_.empty()) break;
  }
  ended_.splice(ended_.end(), threads_, place);
  rested_.SignalAll();
}

void TaskThreads::AwaitIdle() {
  MutexLock lock(&mutex_);
  if (idle_.empty() && threads_.size() >= kUsualThreads) rested_.WaitFor(kEndMoment);
}

// ---- Timers -----------------------------------------------------------------------------------

void TaskThreads::CallAt(uint64_t nanos, std::function<void()> due) {
  MutexLock lock(&timer_mutex_);
  timers_.push_back({.nanos = nanos, .due = std::move(due)});
  std::push_heap(timers_.begin(), timers_.end());
  if (!timer_thread_.joinable()) {
    timer_thread_ = Thread("nacre-timer", [this] { RunTimers(); });
  } else if (timers_.front().nanos == nanos) {
    timers_changed_.Signal();
  }
}

void TaskThreads::RunTimers() {
  MutexLock lock(&timer_mutex_);
  while (!timer_stopping_) {
    if (timers_.empty()) {
      timers_changed_.Wait();
      continue;
    }
    const uint64_t now = Clock::System()->NowNanos();
    if (timers_.front().nanos > now) {
      timers_changed_.WaitFor(std::chrono::nanoseconds(timers_.front().nanos - now));
      continue;
    }
    std::pop_heap(timers_.begin(), timers_.end());
    const std::function<void()> due = std::move(timers_.back().due);
    timers_.pop_back();
    MutexUnlock unlock(&timer_mutex_);
    AwaitIdle();
    due();
  }
}

size_t TaskThreads::count() const {
  MutexLock lock(&mutex_);
  return threads_.size();
}

size_t TaskThreads::most() const {
  MutexLock lock(&mutex_);
  return most_;
}

}  // namespace nacre
