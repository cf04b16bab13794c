#pragma once

#include <sys/types.h>

#include <chrono>

#include "nacre/status.h"
#include "rdma/unique_fd.h"

namespace nacre::rdma {

/// The process at the other end of a connection. Held by a pidfd, so that its number cannot come to
/// name another process.
///
/// Thread safety: all methods may be called from many threads.
class PeerProcess {
 public:
  /// An unknown process.
  PeerProcess() = default;
  /// The process named by the socket's credentials: the one that connected, or listened. The answer
  /// can be trusted once the peer has answered to something that was sent after this call: it was
  /// alive then, so no other process had its number. It is unknown where the system does not tell,
  /// as across process namespaces.
  static PeerProcess Of(int socket);

  /// The same process. It is unknown if this process has no descriptor left.
  PeerProcess Again() const;

  /// 0: unknown.
  pid_t id() const { return id_; }
  bool is_this_process() const;
  /// None of its threads will execute another instruction. False if it is unknown.
  bool Ended() const { return AwaitEnd(std::chrono::nanoseconds(0)); }
  /// Whether a signal or a tracer has stopped it. False if that cannot be told.
  bool Stopped() const;
  /// Sends SIGKILL. `IOError` with the system's reason, as for a process of another user.
  Status Kill() const;
  /// Whether it ended within the time.
  bool AwaitEnd(std::chrono::nanoseconds timeout) const;

 private:
  pid_t id_ = 0;
  UniqueFd fd_;
};

}  // namespace nacre::rdma
