#include "rdma/tcp/socket.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "rdma/memory.h"
#include "rdma/wait.h"
#include "util/uri.h"

namespace nacre::rdma {

namespace {

constexpr int kBacklog = 1024;
constexpr char kScheme[] = "tcp:";

std::string WithScheme(const std::string& text) {
  return text.starts_with(kScheme) ? text : kScheme + text;
}

/// "[::1]:7000" -> "::1", "7000".
Status SplitAddress(const std::string& text, std::string* host, std::string* port) {
  const std::string rest = WithScheme(text).substr(std::strlen(kScheme));
  const size_t colon = rest.rfind(':');
  uint64_t number = 0;
  if (colon == std::string::npos || colon == 0 ||
      !ParseNumber(rest.substr(colon + 1), 0, 65535, &number).ok()) {
    return Status::InvalidArgument("address '" + text + "': not HOST:PORT");
  }
  *host = rest.substr(0, colon);
  *port = std::to_string(number);
  if (host->front() == '[' && host->back() == ']') {
    *host = host->substr(1, host->size() - 2);
  } else if (host->find(':') != std::string::npos) {
    return Status::InvalidArgument("address '" + text + "': an IPv6 address needs brackets");
  }
  if (host->empty() || host->find_first_of(std::string_view("/@\0 ", 4)) != std::string::npos) {
    return Status::InvalidArgument("address '" + text + "': no host");
  }
  return Status::OK();
}

Status SetOption(int socket, int level, int name, int value) {
  if (setsockopt(socket, level, name, &value, sizeof(value)) == 0) return Status::OK();
  return SystemError("setsockopt");
}

/// One attempt. `Unavailable` without the address.
Status ConnectOne(const SocketName& name, const Deadline& deadline, UniqueFd* socket) {
  *socket = UniqueFd(
      ::socket(name.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket->valid()) return SystemError("socket");
  if (connect(socket->get(), name.get(), name.size) == 0) return Status::OK();
  if (errno != EINPROGRESS && errno != EINTR) return Status::Unavailable(std::strerror(errno));
  while (!WaitFor(socket->get(), POLLOUT, deadline.Remaining())) {
    if (deadline.Expired()) return Status::Unavailable("does not answer");
  }
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(socket->get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
    return SystemError("getsockopt");
  }
  return error == 0 ? Status::OK() : Status::Unavailable(std::strerror(error));
}

/// A socket without a listener can meet itself when the system gave it the port it asks for.
bool MetItself(int socket) {
  SocketName here;
  SocketName there;
  here.size = sizeof(here.address);
  there.size = sizeof(there.address);
  return getsockname(socket, here.get(), &here.size) == 0 &&
         getpeername(socket, there.get(), &there.size) == 0 && here.size == there.size &&
         std::memcmp(&here.address, &there.address, here.size) == 0;
}

}  // namespace

std::string SocketName::ToString() const {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(get(), size, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "tcp:?";
  }
  const bool brackets = address.ss_family == AF_INET6;
  return std::string(kScheme) + (brackets ? "[" : "") + host + (brackets ? "]:" : ":") + port;
}

Status ResolveTcpAddress(const std::string& text, std::vector<SocketName>* names) {
  std::string host;
  std::string port;
  NACRE_RETURN_IF_ERROR(SplitAddress(text, &host, &port));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return Status::Unavailable(WithScheme(text) + ": " + gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    SocketName name;
    if (each->ai_addrlen > sizeof(name.address)) continue;
    std::memcpy(&name.address, each->ai_addr, each->ai_addrlen);
    name.size = each->ai_addrlen;
    names->push_back(name);
  }
  return names->empty() ? Status::Unavailable(WithScheme(text) + ": no address") : Status::OK();
}

Status ListenOnTcp(const std::string& text, UniqueFd* socket, SocketName* name) {
  std::vector<SocketName> names;
  NACRE_RETURN_IF_ERROR(ResolveTcpAddress(text, &names));
  *name = names.front();
  *socket = UniqueFd(
      ::socket(name->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket->valid()) return SystemError("socket");
  // Connections of a listener that has gone may linger; they are no reason to wait.
  NACRE_RETURN_IF_ERROR(SetOption(socket->get(), SOL_SOCKET, SO_REUSEADDR, 1));
  if (bind(socket->get(), name->get(), name->size) != 0 || listen(socket->get(), kBacklog) != 0) {
    if (errno == EADDRINUSE) {
      return Status::Busy(WithScheme(text) + ": another process listens there");
    }
    return SystemError("listen at " + WithScheme(text));
  }
  name->size = sizeof(name->address);
  if (getsockname(socket->get(), name->get(), &name->size) != 0) return SystemError("getsockname");
  return Status::OK();
}

Status ConnectTcp(const std::string& text, const Deadline& deadline, UniqueFd* socket) {
  std::vector<SocketName> names;
  NACRE_RETURN_IF_ERROR(ResolveTcpAddress(text, &names));
  Status status;
  for (const SocketName& name : names) {
    status = ConnectOne(name, deadline, socket);
    if (status.ok() && MetItself(socket->get())) status = Status::Unavailable("nobody listens");
    if (status.ok()) return status;
  }
  return status.WithContext(WithScheme(text));
}

Status SetUpTcpSocket(int socket, std::chrono::milliseconds timeout) {
  using std::chrono::seconds;
  const int milliseconds = static_cast<int>(timeout.count());
  const int third =
      std::max(1, static_cast<int>(std::chrono::duration_cast<seconds>(timeout).count() / 3));
  NACRE_RETURN_IF_ERROR(SetOption(socket, IPPROTO_TCP, TCP_NODELAY, 1));
  NACRE_RETURN_IF_ERROR(SetOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds));
  NACRE_RETURN_IF_ERROR(SetOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1));
  NACRE_RETURN_IF_ERROR(SetOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, third));
  NACRE_RETURN_IF_ERROR(SetOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, third));
  return SetOption(socket, IPPROTO_TCP, TCP_KEEPCNT, 2);
}

std::string PeerName(int socket) {
  SocketName name;
  name.size = sizeof(name.address);
  return getpeername(socket, name.get(), &name.size) == 0 ? name.ToString() : "tcp:?";
}

Status SendAllBy(int socket, const Deadline& deadline, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      bytes += sent;
      size -= static_cast<size_t>(sent);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      return Status::Unavailable("the peer closed the connection");
    }
    if (deadline.Expired()) return Status::TimedOut("the peer does not read its socket");
    WaitFor(socket, POLLOUT, deadline.Remaining());
  }
  return Status::OK();
}

Status ReceiveAllBy(int socket, const Deadline& deadline, char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t received = recv(socket, bytes, size, MSG_DONTWAIT);
    if (received > 0) {
      bytes += received;
      size -= static_cast<size_t>(received);
      continue;
    }
    if (received < 0 && errno == EINTR) continue;
    if (received == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
      return Status::Unavailable("the peer closed the connection");
    }
    if (deadline.Expired()) return Status::TimedOut("the peer did not answer in time");
    WaitFor(socket, POLLIN, deadline.Remaining());
  }
  return Status::OK();
}

}  // namespace nacre::rdma
