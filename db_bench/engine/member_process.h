#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "nacre/status.h"
#include "util/clock.h"

// Processes of this program that own shards of the keyspace which another one measures. One starts
// with the flags of that and --serve_member, tells it by its standard output which member it is,
// and serves until its standard input ends: with the process that started it, however that ends.

namespace nacre::bench {

/// A process that this one has started. It is killed on destruction.
/// Thread safety: none.
class MemberProcess {
 public:
  /// Does not wait until it is a member. `clock` outlives it.
  static Status Start(Clock* clock, std::unique_ptr<MemberProcess>* process);
  ~MemberProcess();
  MemberProcess(const MemberProcess&) = delete;
  MemberProcess& operator=(const MemberProcess&) = delete;

  /// Returns when it is a member; `Aborted` if it ended before, `TimedOut` after the deadline.
  Status AwaitMember(Deadline deadline);
  /// ShardMember::id, once it is one.
  int64_t member() const { return member_; }

  /// By SIGKILL, and waits until it is gone.
  void Kill();
  /// Has it close the keyspace and end.
  void BeginEnd();
  /// Waits for that, and kills it after the deadline (`TimedOut`). `Aborted` if it ended otherwise.
  Status AwaitEnd(Deadline deadline);

 private:
  MemberProcess(Clock* clock, pid_t pid, int input, int output)
      : clock_(clock), pid_(pid), input_(input), output_(output) {}

  Clock* const clock_;
  pid_t pid_;         ///< 0: it has ended.
  int input_;         ///< What it reads from; -1: closed.
  const int output_;  ///< What it says is read here.
  int64_t member_ = 0;
};

/// Whether this process is such a one.
bool IsMemberProcess();
/// In such a process: says that it is this member, and returns when it is to end.
Status ServeUntilItShallEnd(int64_t member);

}  // namespace nacre::bench
