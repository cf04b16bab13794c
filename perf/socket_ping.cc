#include "perf/socket_ping.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "rdma/unique_fd.h"

namespace nacre::perf {

namespace {

constexpr size_t kPingBytes = 32;

Status SystemError(const char* what) {
  return Status::IOError(std::string(what) + ": " + std::generic_category().message(errno));
}

bool ReadAll(int socket, char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t n = ::read(socket, bytes, size);
    if (n <= 0) return false;
    bytes += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool WriteAll(int socket, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t n = ::send(socket, bytes, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

void WithoutDelay(int socket) {
  const int on = 1;
  // A socket without it is slower, nothing else.
  [[maybe_unused]] const int set = ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/// The child: answers until the other side hangs up.
void Pong(int listener, size_t size) {
  const rdma::UniqueFd socket(::accept(listener, nullptr, nullptr));
  WithoutDelay(socket.get());
  char ping[kPingBytes];
  const std::vector<char> pong(size);
  while (ReadAll(socket.get(), ping, sizeof(ping)) &&
         WriteAll(socket.get(), pong.data(), pong.size())) {
  }
}

}  // namespace

Status RunSocketPing(size_t size, double seconds, Clock* clock, Result* result) {
  const rdma::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (!listener.valid() ||
      ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return SystemError("listen on the loopback device");
  }
  const pid_t child = ::fork();
  if (child < 0) return SystemError("fork");
  if (child == 0) {
    Pong(listener.get(), size);
    ::kill(::getpid(), SIGKILL);  // This skips what the parent registered for its own end.
  }
  *result = Result();
  Status status;
  {
    const rdma::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.valid() ||
        ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
      status = SystemError("connect to the child");
    }
    WithoutDelay(socket.get());
    const char ping[kPingBytes] = {};
    std::vector<char> pong(size);
    const uint64_t begin = clock->NowNanos();
    const auto warm_up = static_cast<uint64_t>(seconds * 1e8);
    const auto whole = static_cast<uint64_t>(seconds * 1e9) + warm_up;
    uint64_t now = begin;
    while (status.ok() && now - begin < whole) {
      const uint64_t start = now;
      if (!WriteAll(socket.get(), ping, sizeof(ping)) ||
          !ReadAll(socket.get(), pong.data(), pong.size())) {
        status = SystemError("ping-pong");
      }
      now = clock->NowNanos();
      if (start - begin < warm_up) continue;
      ++result->operations;
      result->latency.Add(now - start);
    }
    result->seconds = static_cast<double>(now - begin - warm_up) / 1e9;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return status;
}

}  // namespace nacre::perf
