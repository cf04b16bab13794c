#include "db_bench/process_kill.h"

#include <signal.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

namespace nacre::bench {

Status ProcessKill::KillNow() {
  if (config_.kill_pid == 0) return Status::InvalidArgument("--kill_pid names no process");
  if (::kill(config_.kill_pid, SIGKILL) != 0) {
    return Status::IOError("cannot kill process " + std::to_string(config_.kill_pid) + ": " +
                           std::strerror(errno));
  }
  done_ = true;
  return Status::OK();
}

void ProcessKill::Arm() {
  if (config_.kill_at_seconds <= 0 || done_) return;
  const Deadline deadline = Deadline::After(
      clock_, std::chrono::nanoseconds(static_cast<int64_t>(config_.kill_at_seconds * 1e9)));
  thread_ = std::thread([this, deadline] {
    {
      MutexLock lock(&mutex_);
      while (!cancelled_ && !deadline.Expired()) wake_.WaitFor(deadline.Remaining());
      if (cancelled_) return;
    }
    const Status status = KillNow();
    std::fprintf(stderr, "kill of process %d: %s\n", config_.kill_pid, status.ToString().c_str());
  });
}

void ProcessKill::Disarm() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    wake_.Signal();
  }
  thread_.join();
  MutexLock lock(&mutex_);
  cancelled_ = false;
}

}  // namespace nacre::bench
