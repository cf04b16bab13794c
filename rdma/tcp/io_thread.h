#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "nacre/status.h"
#include "rdma/tcp/polite_spin.h"
#include "rdma/unique_fd.h"
#include "util/mutex.h"

namespace nacre::rdma {

class TcpConnection;

/// A thread of the device that serves the sockets of its connections when no other thread does, and
/// keeps each connection until it is no longer needed.
///
/// Thread safety: all methods may be called from many threads.
class IoThread {
 public:
  /// `timeout`: how long a peer may be silent while something is awaited of it. `spin`: how long
  /// the thread may look for more to do before it sleeps.
  static Status Start(std::chrono::milliseconds timeout, std::chrono::nanoseconds spin,
                      std::unique_ptr<IoThread>* thread);
  /// Closes all connections; their queue pairs have gone.
  ~IoThread();

  /// Serves the connection from now on.
  Status Add(std::shared_ptr<TcpConnection> connection) EXCLUDES(mutex_);
  /// The connection's queue pair has gone: lets go of it as soon as the peer has. Nothing happens
  /// to one that was not added.
  void Retire(TcpConnection* connection) EXCLUDES(mutex_);
  /// Looks after an owned connection until it has no owner any more.
  void WatchOwned(TcpConnection* connection) EXCLUDES(mutex_);
  /// What epoll is to report of the connection, besides hang-ups.
  void SetInterest(TcpConnection* connection, uint32_t events);
  /// Nothing is reported of it any more. May be called again.
  void Unwatch(TcpConnection* connection);

 private:
  IoThread(std::chrono::milliseconds timeout, std::chrono::nanoseconds spin, UniqueFd epoll_fd,
           UniqueFd kick_fd);

  void Run() EXCLUDES(mutex_);
  void Tick() EXCLUDES(mutex_);
  void Sweep() EXCLUDES(mutex_);
  void DropFinished() EXCLUDES(mutex_);
  void Kick();
  std::chrono::milliseconds NextTimeout() EXCLUDES(mutex_);

  const std::chrono::milliseconds sweep_period_;
  const UniqueFd epoll_fd_;
  const UniqueFd kick_fd_;
  std::atomic<bool> stopping_{false};
  PoliteSpin spin_;  ///< The I/O thread's.

  Mutex mutex_;
  /// Only the I/O thread takes connections out, between its turns: what epoll has reported is
  /// still there.
  std::unordered_map<TcpConnection*, std::shared_ptr<TcpConnection>> connections_
      GUARDED_BY(mutex_);
  std::vector<TcpConnection*> owned_ GUARDED_BY(mutex_);
  std::vector<TcpConnection*> retired_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace nacre::rdma
