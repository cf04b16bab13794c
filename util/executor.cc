#include "util/executor.h"

#include <pthread.h>

#include <cassert>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "util/mutex.h"

namespace nacre {
namespace {

class ThreadPool final : public Executor {
 public:
  ThreadPool(int threads, const std::string& name) : work_(&mutex_) {
    assert(threads >= 1);
    threads_.reserve(static_cast<size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { Run(); });
      // Linux takes 15 bytes and the terminator. A thread without its name works as well.
      ::pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());
    }
  }

  ~ThreadPool() override {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      work_.SignalAll();
    }
    for (std::thread& thread : threads_) thread.join();
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
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Executor> NewThreadPool(int threads, const std::string& name) {
  return std::make_unique<ThreadPool>(threads, name);
}

}  // namespace nacre
