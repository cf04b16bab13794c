#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "pool/serve/request_handler.h"
#include "pool/serve/server_connection.h"
#include "pool/wire/database_report.h"
#include "pool/wire/messages.h"
#include "pool/wire/protocol.h"
#include "rdma/transport.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre::pool {

struct RequestServerOptions {
  std::string listen;  ///< "shm:/run/n0.sock"
  /// What the server is: for messages, and for the I/O thread's name behind "nacre-".
  std::string kind = "node";
  uint64_t instance_id = 0;       ///< For the Welcome.
  ProtocolSupport protocol{};     ///< What the server speaks and knows.
  std::shared_ptr<Logger> log{};  ///< May be null.
};

/// Serves connections that speak pool/wire/protocol.h: a thread that accepts them, and an I/O
/// thread that owns them all, takes their requests, and has a RequestHandler execute them.
///
/// Invariants: each client has one lifeline, which comes first, and with which its other
/// connections end. A connection has at most one request under way, and one that waits for the
/// completion of the last reply. What was sent before Stop is still looked at. A connection whose
/// secret was revoked is closed within about a second, and brings no request any more.
///
/// Thread safety: Listen, Start, BeginStop and Stop from one thread; address, counts, stopping and
/// Wake from any; the rest from the I/O thread, so from within the handler's methods.
class RequestServer {
 public:
  struct Counts {
    uint64_t taken = 0;
    uint64_t open = 0;   ///< Not answered yet.
    uint64_t nanos = 0;  ///< From taking them to answering them (RequestHandler::CountsTime).
    uint64_t malformed = 0;
    uint64_t connections = 0;
  };

  /// `device`, `clock` and `handler` outlive this.
  RequestServer(RequestServerOptions options, rdma::Device* device, Clock* clock,
                RequestHandler* handler);
  /// As Stop.
  ~RequestServer();
  RequestServer(const RequestServer&) = delete;
  RequestServer& operator=(const RequestServer&) = delete;

  /// Takes the address, at which clients wait from then on.
  Status Listen();
  /// Serves them. Listen was successful.
  void Start();

  /// The first half of Stop: no client is accepted any more, and new requests are answered
  /// `Unavailable`. The I/O thread goes on, so that the owner can end what it does for earlier
  /// ones and have that answered.
  void BeginStop(bool silently);
  /// Ends all connections, once what came before has been served. Idempotent. `silently`: without
  /// answers to what is under way, as if the process had died; after BeginStop as that has it.
  void Stop(bool silently);

  /// What peers pass to Connect. Since Listen.
  const std::string& address() const { return address_; }
  Counts counts() const;
  /// Since BeginStop. Acquire.
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }
  /// Has the I/O thread call RequestHandler::OnIo. Between Listen and the end of Stop.
  void Wake() { queue_->Wake(); }

  // ---- I/O thread ----

  /// Null if it has been closed. Ids are never used twice.
  ServerConnection* Find(uint64_t connection_id);
  /// Whether the client is connected, as far as this server knows.
  bool HasLifeline(uint64_t client_id) const { return lifelines_.contains(client_id); }
  /// Answers the request of `connection`, which is closed and destroyed if that fails.
  void Answer(ServerConnection* connection, const Status& status, control::Reply reply);
  /// Ends a connection and whatever depends on it: with a lifeline all that the client has. Does
  /// nothing if there is none of this id.
  void CloseConnection(uint64_t connection_id);
  /// Ends those of the client for data that have these numbers (Hello::connection).
  void CloseDataConnections(uint64_t client_id, const std::set<uint32_t>& numbers);
  /// Appends the clients that are connected, without what they own.
  void ListClients(std::vector<ConnectedClient>* clients) const;
  /// Ends the lifelines of clients that do not know all of the features, which are on by now. When
  /// they come again, they are refused by name. False: nothing is new since the last call.
  bool CloseThoseWithout(FeatureSet features_on);
  /// Must precede telling another client that this one lives: it may have ended unnoticed. Then
  /// its lifeline is closed.
  void LookAt(uint64_t client_id);

 private:
  /// Requests of a connection, in the low bits of their ids.
  enum class Work : uint8_t { kReceive = 1, kFetch = 2, kReply = 3 };
  static constexpr int kWorkBits = 8;

  static uint64_t IdOf(const ServerConnection& connection, Work work) {
    return connection.id << kWorkBits | static_cast<uint64_t>(work);
  }

  // Acceptor thread.
  void AcceptLoop();

  // I/O thread: connections.
  void Loop();
  void TakeIncoming() EXCLUDES(mutex_);
  void Admit(std::unique_ptr<rdma::IncomingConnection> incoming, const Hello& hello);
  /// Takes the client in, or rejects it.
  Status TakeIn(rdma::IncomingConnection* incoming, const Hello& hello,
                ServerConnection* connection);
  Status Prepare(ServerConnection* connection);
  void TakeCompletion(const rdma::Completion& completion);
  /// Closes connections that are broken, and those whose secret was revoked.
  void Sweep();

  // I/O thread: requests (request_rounds.cc).
  Status PostReceive(ServerConnection* connection);
  void Received(ServerConnection* connection, uint32_t bytes);
  void Accepted(ServerConnection* connection);
  void Fetched(ServerConnection* connection);
  void Execute(ServerConnection* connection);
  Status PostReply(ServerConnection* connection, const std::string& frame);
  void Answered(ServerConnection* connection);
  void Malformed(ServerConnection* connection, const Status& why);

  /// Written by the threads of the server, read by any. Relaxed.
  struct Counters {
    std::atomic<uint64_t> taken{0};
    std::atomic<uint64_t> open{0};
    std::atomic<uint64_t> nanos{0};
    std::atomic<uint64_t> malformed{0};
    std::atomic<uint64_t> connections{0};
  };

  const RequestServerOptions options_;
  rdma::Device* const device_;
  Clock* const clock_;
  RequestHandler* const handler_;
  std::string address_;  ///< Constant since Listen.

  // The I/O thread's, from Start until it is joined. Others use the queue for Wake alone.
  std::unique_ptr<rdma::MemoryRegion> scratch_;  ///< Backs receives in which nothing should arrive.
  std::unique_ptr<rdma::CompletionQueue> queue_;
  std::unordered_map<uint64_t, std::unique_ptr<ServerConnection>> connections_;
  std::map<uint64_t, uint64_t> lifelines_;  ///< Client to connection.
  uint64_t last_connection_ = 0;
  FeatureSet known_to_all_ = 0;  ///< To all clients that have a lifeline.

  std::unique_ptr<rdma::Listener> listener_;
  Thread acceptor_;
  Thread io_;
  bool accepting_ = false;  ///< Until BeginStop.
  bool serving_ = false;    ///< Until Stop.
  // Release by the stopping thread: pair with the acquire loads of the others.
  std::atomic<bool> stopping_{false};
  std::atomic<bool> silent_{false};
  std::atomic<bool> quit_{false};

  Mutex mutex_;
  /// From the acceptor thread to the I/O thread.
  std::deque<std::pair<std::unique_ptr<rdma::IncomingConnection>, Hello>> incoming_
      GUARDED_BY(mutex_);

  Counters counters_;
};

}  // namespace nacre::pool
