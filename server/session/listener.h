#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nacre/status.h"
#include "server/loop/event_loop.h"
#include "server/session/client.h"
#include "server/session/server_state.h"

namespace nacre::server {

/// Accepts connections on the first loop, and deals them out to all of them in turn.
///
/// Thread safety: code of the first loop only, or while it does not run.
class Listener final : public EventLoop::Handler {
 public:
  /// Listens at HOST:PORT, IPv6 in brackets; port 0 is a free one. `InvalidArgument` if it is
  /// malformed, `IOError` if it cannot be listened at, both naming it. `server` outlives it.
  /// `origin`: that of its clients.
  static Status Open(const std::string& address, Client::Origin origin, ServerState* server,
                     std::unique_ptr<Listener>* listener);
  ~Listener() override;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void OnEvents(uint32_t events) override;
  /// Accepts no more.
  void Stop();
  /// With the port that was chosen.
  const std::string& address() const { return address_; }

 private:
  Listener(int socket, Client::Origin origin, ServerState* server)
      : socket_(socket), origin_(origin), server_(server) {}
  void Deal(int socket);

  int socket_;
  const Client::Origin origin_;
  ServerState* const server_;
  std::string address_;
  size_t next_ = 0;
};

/// The address of an end of a socket, as HOST:PORT; `get` is getsockname or getpeername.
std::string NameOfEnd(int socket, bool peer);

}  // namespace nacre::server
