#pragma once

#include <cstdint>
#include <string>

#include "pool/wire/messages.h"
#include "pool/wire/protocol.h"

namespace nacre::pool {

struct ServerConnection;

/// What a RequestServer asks of its owner: the meaning of the requests.
///
/// Thread safety: Refusal is called by the acceptor thread, all else by the I/O thread, which must
/// not be held up: work that takes long belongs to other threads.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  /// Why a client that says `hello` is refused, in at most kMaxReasonBytes bytes; empty: it is not.
  /// RefusalReason (pool/wire/protocol.h) checks the protocol's version. Acceptor thread.
  virtual std::string Refusal(const Hello& hello) = 0;

  /// Features that are on, which every client has to know (RequestServer::CloseThoseWithout).
  virtual FeatureSet features_on() const { return 0; }

  /// Executes `connection->request`, having seen to it that `connection->rights` allow that. It is
  /// answered once, by RequestServer::Answer, here or in a
  /// later OnIo. A connection brings no further request until then. Answering, and whatever closes
  /// connections, may destroy `*connection`.
  virtual void Execute(ServerConnection* connection) = 0;

  /// Whether the time until this request is answered counts in RequestServer::Counts::nanos.
  virtual bool CountsTime(const control::Request& /*request*/) const { return true; }

  /// The connection, which RequestServer::Find does not find any more, ends; what is done for its
  /// request is not waited for. Those that are there at the server's end do not come here.
  virtual void Closing(const ServerConnection& /*connection*/) {}

  /// The client is gone, and its other connections are closed. `hung_up`: it has certainly ended
  /// its lifeline (rdma::QueuePair::peer_hung_up).
  virtual void LifelineEnded(uint64_t /*client_id*/, bool /*hung_up*/) {}

  /// In each round of the I/O thread, so after each RequestServer::Wake: answers what other threads
  /// have finished.
  virtual void OnIo() {}
};

}  // namespace nacre::pool
