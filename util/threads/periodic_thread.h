#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre {

/// A thread that does the same piece of work again and again, with a rest after each time.
///
/// Thread safety: all methods may be called from many threads at once, save Start and Stop, which
/// one thread calls.
class PeriodicThread {
 public:
  enum class Begin : uint8_t { kWithWork, kWithRest };

  PeriodicThread() = default;
  ~PeriodicThread() { Stop(); }
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

  /// `name` is that of the thread (see Thread); `work` is called by it. What it throws is dropped:
  /// a lack of memory may be over the next time.
  void Start(const std::string& name, std::chrono::nanoseconds rest, Begin begin,
             std::function<void()> work);
  /// Waits for the work that is under way. Idempotent; without Start it does nothing.
  void Stop() EXCLUDES(mutex_);
  /// Ends the rest that is under way, if there is one.
  void Wake() EXCLUDES(mutex_);
  /// Whether Stop was called: long work looks at it.
  bool stopping() const EXCLUDES(mutex_);

 private:
  void Run(std::chrono::nanoseconds rest, Begin begin, const std::function<void()>& work)
      EXCLUDES(mutex_);

  mutable Mutex mutex_;
  CondVar wake_{&mutex_};
  bool stopping_ GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace nacre
