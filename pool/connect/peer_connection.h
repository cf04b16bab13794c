#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/connect/client_context.h"
#include "pool/connect/node_link.h"
#include "pool/connect/request_channel.h"
#include "pool/wire/messages.h"
#include "rdma/transport.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre::pool {

/// A client's end of a connection to a server that is no memory node (pool/serve/): a lifeline,
/// whose end tells each side of the other's, and channels for requests, made at first use and kept.
/// It never comes back once it has ended: its owner makes another one.
///
/// Invariants: the lifeline and its queue are used by the thread of this object alone, which sleeps
/// on the queue, as a control connection notices its peer's end only if it is polled or waited for.
/// A channel is used by one call at a time.
///
/// Thread safety: all methods may be called from many threads at once; destruction after they have
/// returned.
class PeerConnection {
 public:
  /// Requests under way at a time. More wait for one of them.
  static constexpr int kMaxInFlight = 64;

  /// Connects to the server at `address` as a client that it has never seen. `device` and `clock`
  /// outlive the connection. `Unavailable` or `TimedOut`, naming the address, if it cannot be
  /// reached by the deadline or refuses.
  static Status Connect(rdma::Device* device, Clock* clock, const std::string& address,
                        Deadline deadline, std::unique_ptr<PeerConnection>* connection);
  /// Ends the connection: for the server this client has hung up.
  ~PeerConnection();
  PeerConnection(const PeerConnection&) = delete;
  PeerConnection& operator=(const PeerConnection&) = delete;

  /// Sends `request` (control::Request::member_request), and waits for the reply by polling. A
  /// status other than OK is the server's own as it is, or the transport's, which names the
  /// address: `Unavailable` if the connection is lost, `TimedOut` after the deadline, and else as
  /// RequestChannel::Call. `*sent` is false if the server certainly never saw the request.
  Status Call(const Slice& request, Deadline deadline, std::string* reply, bool* sent);

  /// The same for a call that takes as long as it takes: the caller sleeps. `still_wanted` is asked
  /// about every `period`; a failure of it ends the call, and is answered.
  Status CallAndSleep(const Slice& request, std::chrono::nanoseconds period,
                      const std::function<Status()>& still_wanted, std::string* reply, bool* sent);

  /// Whether the lifeline is broken: the server has ended what it does for this client, or will
  /// once it notices. All later calls are answered `Unavailable`. Acquire: pairs with the thread.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// It has ended, and the server has certainly ended it, or itself. Else it may live.
  bool hung_up() const { return ended() && hung_up_.load(std::memory_order_relaxed); }
  /// Has the thread take in what the system has heard from the server by now; `ended` tells it
  /// afterwards. See rdma::QueuePair::LookAtPeer.
  void LookAtPeer() EXCLUDES(mutex_);

  const std::string& address() const { return link_.address(); }
  /// As which the server knows this client.
  uint64_t client_id() const { return context_.client_id; }

 private:
  /// What a call does while all are under way: it asks `still_wanted` about every `period`.
  struct Waiting {
    std::function<std::chrono::nanoseconds()> period;
    std::function<Status()> still_wanted;
  };
  /// How a call uses its channel.
  using Exchange = std::function<Status(RequestChannel*, control::Request*, control::Reply*)>;
  /// One of the kMaxInFlight, until it is destroyed.
  class Turn;

  PeerConnection(rdma::Device* device, Clock* clock, const std::string& address);

  Status Begin(Deadline deadline);
  /// By the thread.
  void Watch();
  /// Takes what is on the queue; whether the lifeline still stands. By the thread.
  bool Stands();

  Status Lost() const;
  Status AwaitTurn(const Waiting& waiting) EXCLUDES(mutex_);
  Status CallOn(const Slice& request, const Waiting& waiting,
                const std::function<Deadline()>& connect_deadline, const Exchange& exchange,
                std::string* reply, bool* sent) EXCLUDES(mutex_);
  std::unique_ptr<RequestChannel> TakeIdle() EXCLUDES(mutex_);
  void GiveIdle(std::unique_ptr<RequestChannel> channel) EXCLUDES(mutex_);

  ClientContext context_;
  NodeLink link_;

  // The thread's, from Begin until it is joined. Others use the queue for Wake alone.
  std::unique_ptr<rdma::CompletionQueue> queue_;
  std::unique_ptr<rdma::MemoryRegion> region_;
  std::unique_ptr<rdma::QueuePair> lifeline_;

  std::atomic<bool> ended_{false};    ///< Release by the thread, with mutex_ held.
  std::atomic<bool> hung_up_{false};  ///< Before ended_.
  std::atomic<bool> stopping_{false};

  Mutex mutex_;
  CondVar turn_free_{&mutex_};
  CondVar looked_{&mutex_};
  int in_flight_ GUARDED_BY(mutex_) = 0;
  uint64_t looks_wanted_ GUARDED_BY(mutex_) = 0;
  uint64_t looks_taken_ GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<RequestChannel>> idle_ GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace nacre::pool
