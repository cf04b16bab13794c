#include "server/session/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string_view>
#include <system_error>

#include "server/session/connection.h"

namespace nacre::server {
namespace {

constexpr int kAcceptsAtOnce = 64;
/// How long nothing is accepted once the system has no more files.
constexpr std::chrono::milliseconds kRestWithoutFiles{100};

Status ListenError(const std::string& address, const std::string& what) {
  return Status::IOError("cannot listen at " + address + ": " + what);
}

bool SplitAddress(const std::string& address, std::string* host, std::string* port) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) return false;
  *host = address.substr(0, colon);
  *port = address.substr(colon + 1);
  if (host->front() == '[' && host->back() == ']') *host = host->substr(1, host->size() - 2);
  return port->find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::string NameOfEnd(int socket, bool peer) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const int got = peer ? ::getpeername(socket, any, &size) : ::getsockname(socket, any, &size);
  if (got != 0) return "?:0";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(ntohs(four.sin_port));
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
  return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(six.sin6_port));
}

Status Listener::Open(const std::string& address, Client::Origin origin, ServerState* server,
                      std::unique_ptr<Listener>* listener) {
  std::string host;
  std::string port;
  if (!SplitAddress(address, &host, &port)) {
    return Status::InvalidArgument("address '" + address + "' is not HOST:PORT");
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  const int looked_up = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (looked_up != 0) return ListenError(address, ::gai_strerror(looked_up));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(list, &::freeaddrinfo);
  const int socket =
      ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (socket < 0) return ListenError(address, std::generic_category().message(errno));
  std::unique_ptr<Listener> opened(new Listener(socket, origin, server));
  const int on = 1;
  if (::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket, found->ai_addr, found->ai_addrlen) != 0 || ::listen(socket, SOMAXCONN) != 0) {
    return ListenError(address, std::generic_category().message(errno));
  }
  opened->address_ = NameOfEnd(socket, /*peer=*/false);
  NACRE_RETURN_IF_ERROR(server->loops.front()->loop.Add(socket, EPOLLIN, opened.get()));
  *listener = std::move(opened);
  return Status::OK();
}

Listener::~Listener() {
  if (socket_ >= 0) ::close(socket_);
}

void Listener::Stop() {
  if (socket_ < 0) return;
  server_->loops.front()->loop.Remove(socket_);
  ::close(socket_);
  socket_ = -1;
}

void Listener::OnEvents(uint32_t /*events*/) {
  for (int i = 0; i < kAcceptsAtOnce && socket_ >= 0; ++i) {
    const int accepted = ::accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted >= 0) {
      Deal(accepted);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      // Those that wait would have the loop turn without end.
      EventLoop& loop = server_->loops.front()->loop;
      loop.Change(socket_, 0, this);
      loop.After(kRestWithoutFiles, [this, &loop] {
        if (socket_ >= 0) loop.Change(socket_, EPOLLIN, this);
      });
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void Listener::Deal(int socket) {
  if (server_->connections.load(std::memory_order_relaxed) >=
      static_cast<uint64_t>(server_->settings.clients_max.load(std::memory_order_relaxed))) {
    constexpr std::string_view kFull = "-ERR max number of clients reached\r\n";
    server_->rejected.fetch_add(1, std::memory_order_relaxed);
    // It is told if its socket has room, as that of a new connection has. TLS would have to be
    // agreed on first.
    if (server_->tls() == nullptr &&
        ::send(socket, kFull.data(), kFull.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      errno = 0;
    }
    ::close(socket);
    return;
  }
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  // Counted from here on, so that many at once do not pass the bound.
  server_->connections.fetch_add(1, std::memory_order_relaxed);
  LoopState* const loop = server_->loops[next_++ % server_->loops.size()].get();
  loop->loop.Post([socket, origin = origin_, loop, server = server_] {
    Connection::Start(socket, origin, server, loop);
  });
}

}  // namespace nacre::server
