#include "tests/support/rdma/bare_sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace nacre::rdma {
namespace {

void Check(bool good) {
  if (!good) throw std::runtime_error(std::strerror(errno));
}

bool SendAll(int socket, const std::vector<char>& bytes) {
  return send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

bool ReceiveAll(int socket, std::vector<char>* bytes) {
  return recv(socket, bytes->data(), bytes->size(), MSG_WAITALL) ==
         static_cast<ssize_t>(bytes->size());
}

bool SetUp(int socket) {
  const int one = 1;
  return setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0;
}

}  // namespace

BareSockets::BareSockets(size_t count, size_t ping_bytes, size_t pong_bytes)
    : ping_(ping_bytes), pong_(pong_bytes) {
  for (size_t i = 0; i < count; i++) Connect();
}

BareSockets::~BareSockets() {
  for (Peer& peer : peers_) {
    peer.socket.Reset();
    kill(peer.process, SIGKILL);
    waitpid(peer.process, nullptr, 0);
  }
}

void BareSockets::Connect() {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  Check(listener.valid() && bind(listener.get(), generic, size) == 0 &&
        listen(listener.get(), 1) == 0 && getsockname(listener.get(), generic, &size) == 0);
  Peer peer;
  peer.process = fork();
  Check(peer.process >= 0);
  if (peer.process == 0) {
    // Nothing here allocates: other threads may have held the allocator's lock.
    const int accepted = accept(listener.get(), nullptr, nullptr);
    if (SetUp(accepted)) {
      while (ReceiveAll(accepted, &ping_) && SendAll(accepted, pong_)) {
      }
    }
    _exit(0);
  }
  peer.socket = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool connected = peer.socket.valid() && connect(peer.socket.get(), generic, size) == 0 &&
                         SetUp(peer.socket.get());
  peers_.push_back(std::move(peer));
  Check(connected);
}

void BareSockets::PingAll() {
  for (const Peer& peer : peers_) Check(SendAll(peer.socket.get(), ping_));
  for (const Peer& peer : peers_) Check(ReceiveAll(peer.socket.get(), &pong_));
}

}  // namespace nacre::rdma
