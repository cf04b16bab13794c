#include "util/threads/periodic_task.h"

#include <algorithm>
#include <utility>

#include "util/clock.h"
#include "util/exceptions.h"
#include "util/mutex.h"

namespace nacre {

namespace {

constexpr std::chrono::milliseconds kRestStep{10};
/// The name of a thread that does nothing in particular.
constexpr const char* kAnyTask = "nacre-task";

}  // namespace

class PeriodicTask::State : public std::enable_shared_from_this<State> {
 public:
  void Start(const Where& where, const std::string& name, std::chrono::nanoseconds rest,
             Begin begin, std::function<void()> work) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    threads_ = where.threads;
    executor_ = where.executor != nullptr ? where.executor : where.threads->ticks();
    name_ = name;
    rest_ = rest;
    work_ = std::move(work);
    if (begin == Begin::kWithWork) {
      Queue();
    } else {
      Rest();
    }
  }

  void Stop() EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    stopping_ = true;
    while (phase_ == Phase::kWorking) ended_.Wait();
    work_ = nullptr;
  }

  void Wake() EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if (phase_ == Phase::kWorking) again_ = true;
    if (phase_ == Phase::kResting && !stopping_) QueueOrRest();
  }

  bool stopping() const EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return stopping_;
  }

 private:
  enum class Phase : uint8_t { kNone, kResting, kQueued, kWorking };

  void Queue() REQUIRES(mutex_) {
    executor_->Schedule([state = shared_from_this()] { state->Work(); });
    phase_ = Phase::kQueued;
  }

  void Rest() REQUIRES(mutex_) {
    const uint64_t end = Clock::System()->NowNanos() + static_cast<uint64_t>(rest_.count());
    threads_->CallAt(end, [state = shared_from_this(), end] { state->RestEnded(end); });
    rest_end_nanos_ = end;
    phase_ = Phase::kResting;
  }

  void RestEnded(uint64_t end) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if (phase_ != Phase::kResting || rest_end_nanos_ != end || stopping_)
      return;  // Wake was first.
    QueueOrRest();
  }

  /// Without memory or a thread for the work, it rests once more.
  void QueueOrRest() REQUIRES(mutex_) {
    const Status queued = CatchAll([this]() REQUIRES(mutex_) {
      Queue();
      return Status::OK();
    });
    if (!queued.ok()) Rest();
  }

  void Work() EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    while (!stopping_) {
      phase_ = Phase::kWorking;
      again_ = false;
      {
        MutexUnlock unlock(&mutex_);
        Thread::NameThis(name_);
        CatchAll([this] {
          work_();
          return Status::OK();
        }).IgnoreError();
        Thread::NameThis(kAnyTask);
      }
      if (stopping_ || again_) continue;
      const Status rests = CatchAll([this]() REQUIRES(mutex_) {
        Rest();
        return Status::OK();
      });
      if (rests.ok()) return;
      // Without memory for a timer it rests here.
      MutexUnlock unlock(&mutex_);
      Clock::System()->SleepFor(std::min<std::chrono::nanoseconds>(rest_, kRestStep));
    }
    phase_ = Phase::kNone;
    ended_.SignalAll();
  }

  mutable Mutex mutex_;
  CondVar ended_{&mutex_};
  // These do not change while it works.
  TaskThreads* threads_ = nullptr;
  Executor* executor_ = nullptr;
  std::string name_;
  std::chrono::nanoseconds rest_{0};
  std::function<void()> work_;

  Phase phase_ GUARDED_BY(mutex_) = Phase::kNone;
  uint64_t rest_end_nanos_ GUARDED_BY(mutex_) = 0;
  bool again_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

PeriodicTask::PeriodicTask() : state_(std::make_shared<State>()) {}

void PeriodicTask::Start(const Where& where, const std::string& name, std::chrono::nanoseconds rest,
                         Begin begin, std::function<void()> work) {
  state_->Start(where, name, rest, begin, std::move(work));
}
void PeriodicTask::Stop() { state_->Stop(); }
void PeriodicTask::Wake() { state_->Wake(); }
bool PeriodicTask::stopping() const { return state_->stopping(); }

}  // namespace nacre
