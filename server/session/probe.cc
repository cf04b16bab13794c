#include "server/session/probe.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "server/net/await_socket.h"
#include "server/net/server_tls.h"
#include "server/session/master.h"
#include "util/clock.h"

namespace nacre::server {
namespace {

constexpr std::string_view kPing = "PING\r\n";

bool Connect(int socket, const addrinfo& to, const Deadline& deadline) {
  if (::connect(socket, to.ai_addr, to.ai_addrlen) != 0 && errno != EINPROGRESS) return false;
  return AwaitSocket(socket, POLLOUT, deadline);
}

bool Ping(int socket, const Deadline& deadline) {
  const ssize_t sent = ::send(socket, kPing.data(), kPing.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(kPing.size())) return false;
  char first = 0;
  return AwaitSocket(socket, POLLIN, deadline) && ::recv(socket, &first, 1, 0) == 1;
}

}  // namespace

bool Answers(const std::string& address, bool tls, std::chrono::milliseconds patience) {
  const Deadline deadline = Deadline::After(Clock::System(), patience);
  const auto [host, port] = Master::Divide(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const int socket = ::socket(each->ai_family, each->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                                each->ai_protocol);
    if (socket < 0) continue;
    const bool answered = Connect(socket, *each, deadline) &&
                          (tls ? SpeaksTls(socket, deadline) : Ping(socket, deadline));
    ::close(socket);
    if (answered) return true;
  }
  return false;
}

}  // namespace nacre::server
