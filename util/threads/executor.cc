#include "util/threads/executor.h"

#include <cassert>
#include <deque>
#include <utility>
#include <vector>

#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

class ThreadPool final : public Executor {
 public:
  ThreadPool(int threads, const std::string& name) : name_(name), work_(&mutex_) {
    assert(threads >= 1);
    Grow(threads);
  }

  ~ThreadPool() override {
    std::vector<Thread> threads;
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      work_.SignalAll();
      threads.swap(threads_);
    }
    for (Thread& thread : threads) thread.Join();
    assert(tasks_.empty());
  }

  void Schedule(std::function<void()> task) override EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
    work_.Signal();
  }

  void Grow(int threads) override EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    while (threads_.size() < static_cast<size_t>(threads)) {
      threads_.emplace_back(name_, [this] { Run(); });
    }
  }

 private:
  /// Ends when the pool is stopping and the queue empty. A task that is still running may schedule
  /// more; its own thread comes back for them.
  void Run() EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    while (true) {
      while (tasks_.empty() && !stopping_) work_.Wait();
      if (tasks_.empty()) return;
      {
        std::function<void()> task = std::move(tasks_.front());
        tasks_.pop_front();
        MutexUnlock unlock(&mutex_);
        task();
        task = nullptr;  // What it captured may need the mutex to die.
      }
    }
  }

  const std::string name_;
  Mutex mutex_;
  CondVar work_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Executor> NewThreadPool(int threads, const std::string& name) {
  return std::make_unique<ThreadPool>(threads, name);
}

}  // namespace nacre
