#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "util/simulation.h"
#include "util/thread_annotations.h"

namespace nacre {

/// std::mutex that Clang's analysis understands. In a simulation (util/simulation.h) a thread that
/// finds it taken sleeps in the simulation, and taking it is a scheduling point.
class CAPABILITY("mutex") Mutex {
 public:
  void Lock() ACQUIRE() {
    if (Simulation* simulation = Simulation::Current()) [[unlikely]]
      return LockIn(simulation);
    mutex_.lock();
  }
  void Unlock() RELEASE() {
    mutex_.unlock();
    if (Simulation* simulation = Simulation::Current()) [[unlikely]]
      simulation->Unpark(this, /*all=*/false);
  }
  bool TryLock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void AssertHeld() const ASSERT_CAPABILITY(this) {}

 private:
  friend class CondVar;

  void LockIn(Simulation* simulation);

  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_->Lock(); }
  /// Takes over a lock that TryLock took.
  MutexLock(Mutex* mutex, std::adopt_lock_t) REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() RELEASE() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

/// Gives the mutex up for a scope.
class SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex* mutex) RELEASE(mutex) : mutex_(mutex) { mutex_->Unlock(); }
  /// RELEASE: as Clang has it, the scope ends and with it the giving up.
  ~MutexUnlock() RELEASE() { mutex_->Lock(); }
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex* const mutex_;
};

/// Bound to one mutex, which the caller of Wait holds.
class CondVar {
 public:
  explicit CondVar(Mutex* mutex) : mutex_(mutex) {}
  void Wait() {
    if (Simulation* simulation = Simulation::Current()) [[unlikely]] {
      WaitIn(simulation, Simulation::kForever);
      return;
    }
    std::unique_lock<std::mutex> lock(mutex_->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  /// False on timeout. May wake without cause.
  bool WaitFor(std::chrono::nanoseconds timeout) {
    if (Simulation* simulation = Simulation::Current()) [[unlikely]]
      return WaitIn(simulation, timeout);
    std::unique_lock<std::mutex> lock(mutex_->mutex_, std::adopt_lock);
    const auto status = condition_.wait_for(lock, timeout);
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void Signal() {
    if (Simulation* simulation = Simulation::Current()) [[unlikely]]
      return simulation->Unpark(this, /*all=*/false);
    condition_.notify_one();
  }
  void SignalAll() {
    if (Simulation* simulation = Simulation::Current()) [[unlikely]]
      return simulation->Unpark(this, /*all=*/true);
    condition_.notify_all();
  }

 private:
  bool WaitIn(Simulation* simulation, std::chrono::nanoseconds timeout);

  Mutex* const mutex_;
  std::condition_variable condition_;
};

}  // namespace nacre
