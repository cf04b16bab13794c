#include "util/threads/periodic_thread.h"

#include <utility>

#include "util/exceptions.h"

namespace nacre {

void PeriodicThread::Start(const std::string& name, std::chrono::nanoseconds rest, Begin begin,
                           std::function<void()> work) {
  thread_ = Thread(name, [this, rest, begin, work = std::move(work)] { Run(rest, begin, work); });
}

void PeriodicThread::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
  }
  if (thread_.joinable()) thread_.Join();
}

void PeriodicThread::Wake() {
  MutexLock lock(&mutex_);
  wake_.SignalAll();
}

bool PeriodicThread::stopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

void PeriodicThread::Run(std::chrono::nanoseconds rest, Begin begin,
                         const std::function<void()>& work) {
  for (bool works = begin == Begin::kWithWork;; works = true) {
    if (works) {
      CatchAll([&work] {
        work();
        return Status::OK();
      }).IgnoreError();
    }
    MutexLock lock(&mutex_);
    if (!stopping_) wake_.WaitFor(rest);
    if (stopping_) return;
  }
}

}  // namespace nacre
