#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "pool/read/stream_read.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre::pool {

/// Moves the bytes of reads on a thread of its own, where the threads that post and poll do that,
/// for threads that go on with other work until they need them. The thread begins with the first
/// read.
///
/// Bound: kMostReads that wait to be started. What it does not take, its caller starts.
///
/// Thread safety: all methods may be called from many threads at once.
class ReadCarrier {
 public:
  struct Work {
    std::vector<StreamPart> parts;
    std::shared_ptr<StreamRead> read;
  };
  /// `start` starts a read; `await` waits until a read is done, or the flag is set. Both may be
  /// called until the carrier has ended.
  ReadCarrier(std::function<void(const Work&)> start,
              std::function<void(const StreamRead&, const std::atomic<bool>&)> await);
  /// Ends the thread. What was not started never will be.
  ~ReadCarrier();

  /// False if it does not take the read.
  bool Take(std::span<const StreamPart> parts, const std::shared_ptr<StreamRead>& read)
      EXCLUDES(mutex_);
  /// Hands a read back that has not been started, to be started by the caller, who needs it now.
  /// False if it is under way, or was never taken.
  bool GiveBack(const StreamRead& read, Work* work) EXCLUDES(mutex_);

 private:
  static constexpr size_t kMostReads = 64;

  void Run() EXCLUDES(mutex_);
  /// The next read to start. False if there is none: at once, or at the end if it is to `wait`.
  bool Next(bool wait, Work* work) EXCLUDES(mutex_);

  const std::function<void(const Work&)> start_;
  const std::function<void(const StreamRead&, const std::atomic<bool>&)> await_;
  std::atomic<bool> ending_{false};  ///< Set under mutex_; relaxed where it only shortens a wait.
  Mutex mutex_;
  CondVar filled_{&mutex_};
  std::deque<Work> waiting_ GUARDED_BY(mutex_);
  bool refused_ GUARDED_BY(mutex_) = false;  ///< The system has no more threads.
  Thread thread_ GUARDED_BY(mutex_);
};

}  // namespace nacre::pool
