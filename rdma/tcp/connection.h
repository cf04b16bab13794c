#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "rdma/refusals.h"
#include "rdma/tcp/session.h"
#include "rdma/tcp/tls.h"
#include "rdma/transport.h"
#include "rdma/unique_fd.h"
#include "util/mutex.h"

namespace nacre::rdma {

class IoThread;

/// A connected socket and the session over it. Threads serve it under its mutex, a bounded number
/// of bytes at a time: a thread that posts sends; an I/O thread reads and sends when epoll says so;
/// a thread that polls or waits for replies reads as well, as the connection's owner.
///
/// While it is owned, epoll does not report that bytes arrived. The owner keeps it from one request
/// to the next, so that none costs a call of epoll, unless it carries messages, which may come at
/// any time, or has bytes that the socket did not take. The I/O thread takes it back when it finds,
/// at a tick, that the owner neither served it since the last one nor sleeps on it. So the peer's
/// requests are carried out whatever the owner does.
///
/// Lock order: this mutex, then IoThread's and TcpCompletionQueue's, which are leaves.
class TcpConnection {
 public:
  struct Parts {
    UniqueFd socket;   ///< Connected, not blocking.
    std::string peer;  ///< Name for messages.
    IoThread* io_thread = nullptr;
    Refusals* refusals = nullptr;
    std::unique_ptr<TlsStream> tls{};  ///< Established; null: bytes go as they are.
    bool messages = true;              ///< SENDs may be carried.
    bool peer_may_write = true;        ///< The peer's requests may change memory.
    Session::Parts session;
  };
  explicit TcpConnection(Parts parts);

  int socket() const { return socket_.get(); }
  const std::string& peer() const { return peer_; }
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  /// The peer's system said that its end was closed. A reset does not tell: it is also what a
  /// system sends that has given up waiting, or forgotten, for a process that lives.
  bool peer_hung_up() const { return peer_hung_up_.load(std::memory_order_acquire); }

  // These are called by the queue pair.

  /// `Busy` if it is a message and the peer takes no more of them. Never blocks: what the socket
  /// does not take is sent later.
  Status Post(const TcpRequest& request) EXCLUDES(mutex_);
  /// Sends what waits for the end of its batch.
  void Flush() EXCLUDES(mutex_);
  void PostReceive(uint64_t id, const LocalBuffer& buffer) EXCLUDES(mutex_);
  /// Serves the socket, whichever thread it was left to.
  void TakeTurn() EXCLUDES(mutex_);
  uint64_t receives_outstanding() EXCLUDES(mutex_);
  /// The queue pair goes. The socket is kept until the peer has read what was sent.
  void Close() EXCLUDES(mutex_);

  // These are called by the thread that uses a completion queue.

  /// Serves the socket if replies are awaited and no other thread does so right now.
  void ServeAsOwner() EXCLUDES(mutex_);
  /// True if the thread is to sleep on the socket, and serve it when there are `events`.
  bool BeginOwnersWait(int* fd, short* events) EXCLUDES(mutex_);
  void EndOwnersWait() { owner_waits_.store(false, std::memory_order_relaxed); }
  /// Gives the connection back to the I/O thread.
  void GiveBack() EXCLUDES(mutex_);

  // These are called by the I/O thread.

  void TakeEvents(uint32_t events) EXCLUDES(mutex_);
  bool owned() const { return owned_.load(std::memory_order_relaxed); }
  /// Takes the connection back from an owner that did nothing since the last call.
  void Tick() EXCLUDES(mutex_);
  /// Gives the peer up if it was silent for `periods_max` calls though something is awaited.
  void Sweep(int periods_max) EXCLUDES(mutex_);
  /// Whether the connection is no longer needed.
  bool finished() EXCLUDES(mutex_);

 private:
  /// The bytes that one turn may move, so that no connection keeps others waiting for long.
  static constexpr size_t kTurnBytes = 512 << 10;
  /// How many sweeps a socket that was closed here may wait for the peer to close it.
  static constexpr int kLingerPeriods = 8;

  /// As recvmsg.
  ssize_t Receive(iovec* vectors, size_t count) REQUIRES(mutex_);
  /// Whether there is something to do once the socket takes more.
  bool WantsToSend() REQUIRES(mutex_);
  /// Whether an owner may keep it: it awaits replies, or nothing can come that does not bear a
  /// tick.
  bool MayKeep() REQUIRES(mutex_);
  void Read() REQUIRES(mutex_);
  /// `ahead`: null if the bytes are to be taken as they are.
  void ReadBytes(TlsStream::Ahead* ahead) REQUIRES(mutex_);
  void Send() REQUIRES(mutex_);
  /// As sendmsg.
  ssize_t SendBytes(iovec* vectors, int count) REQUIRES(mutex_);
  /// After a turn: sees to a session that broke, and tells epoll what to wait for.
  void EndTurn() REQUIRES(mutex_);
  void Own() REQUIRES(mutex_);
  void SetInterest() REQUIRES(mutex_);

  const UniqueFd socket_;
  const std::string peer_;
  IoThread* const io_thread_;
  Refusals* const refusals_;
  const bool control_;

  std::atomic<bool> broken_{false};
  std::atomic<bool> peer_hung_up_{false};
  // What owners and ticks look at without the mutex; each is only a hint.
  std::atomic<bool> owned_{false};
  std::atomic<bool> awaits_{false};
  std::atomic<bool> owner_waits_{false};
  std::atomic<uint32_t> owner_turns_{0};
  uint32_t turns_at_tick_ = 0;  ///< The I/O thread's.

  Mutex mutex_;
  const std::unique_ptr<TlsStream> tls_ PT_GUARDED_BY(mutex_);
  Session session_ GUARDED_BY(mutex_);
  uint32_t interest_ GUARDED_BY(mutex_);
  /// Whether epoll watches it; once false, this stays false.
  bool watched_ GUARDED_BY(mutex_) = true;
  bool ended_ GUARDED_BY(mutex_) = false;   ///< Nothing more can be read.
  bool shut_ GUARDED_BY(mutex_) = false;    ///< Nothing more will be sent.
  bool closed_ GUARDED_BY(mutex_) = false;  ///< The queue pair has gone.
  uint64_t moved_ GUARDED_BY(mutex_) = 0;   ///< Bytes sent, and taken while open.
  uint64_t moved_at_sweep_ GUARDED_BY(mutex_) = 0;
  int silent_periods_ GUARDED_BY(mutex_) = 0;
};

}  // namespace nacre::rdma
