#include "util/executor.h"

#include <cassert>
#include <deque>
#include <utility>
#include <vector>

#include "util/mutex.h"
#include "util/thread.h"

namespace nacre {
namespace {

class ThreadPool final : public Executor {
 public:
  ThreadPool(int threads, const std::string& name) : work_(&mutex_) {
    assert(threads >= 1);
    threads_.reserve(static_cast<size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back(name, [this] { Run(); });
    }
  }

  ~ThreadPool() override {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      work_.SignalAll();
    }
    for (Thread& thread : threads_) thread.Join();
    assert(tasks_.empty());
  }

  void Schedule(std::function<void()> task) override EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
    work_.Signal();
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

  Mutex mutex_;
  CondVar work_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;
};

}  // namespace

std::unique_ptr<Executor> NewThreadPool(int threads, const std::string& name) {
  return std::make_unique<ThreadPool>(threads, name);
}

}  // namespace nacre
