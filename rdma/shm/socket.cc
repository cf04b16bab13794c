#include "rdma/shm/socket.h"

#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rdma/memory.h"
#include "rdma/wait.h"

namespace nacre::rdma {

namespace {

constexpr int kBacklog = 128;

struct SocketAddress {
  sockaddr_un address{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

SocketAddress ToSocketAddress(const ShmAddress& address) {
  SocketAddress result;
  result.address.sun_family = AF_UNIX;
  char* const path = result.address.sun_path;
  const size_t header = offsetof(sockaddr_un, sun_path);
  if (!address.abstract) {
    address.name.copy(path, address.name.size());
    result.size = static_cast<socklen_t>(header + address.name.size() + 1);
  } else if (!address.name.empty()) {
    address.name.copy(path + 1, address.name.size());
    result.size = static_cast<socklen_t>(header + 1 + address.name.size());
  } else {
    result.size = static_cast<socklen_t>(header);  // The kernel chooses an abstract name.
  }
  return result;
}

UniqueFd NewSocket() {
  return UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// Whether a process accepts connections at the address right now.
bool HasListener(const ShmAddress& address) {
  const UniqueFd probe = NewSocket();
  const SocketAddress target = ToSocketAddress(address);
  return connect(probe.get(), target.get(), target.size) == 0 || errno == EAGAIN;
}

/// Serialises processes that replace or remove socket files of one directory; no lock file stays.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& path) {
    std::string copy = path;
    directory_ = UniqueFd(open(dirname(copy.data()), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory_.valid()) flock(directory_.get(), LOCK_EX);
  }

 private:
  UniqueFd directory_;
};

/// Requires the directory's lock, after bind found the path taken.
Status RemoveStaleSocket(const ShmAddress& address) {
  struct stat attributes;
  if (lstat(address.name.c_str(), &attributes) != 0) {
    return errno == ENOENT ? Status::OK() : SystemError(address.name);
  }
  if (!S_ISSOCK(attributes.st_mode)) {
    return Status::InvalidArgument(address.name + ": exists and is no socket");
  }
  if (HasListener(address)) {
    return Status::Busy(address.name + ": another process listens there");
  }
  if (unlink(address.name.c_str()) != 0) return SystemError("remove " + address.name);
  return Status::OK();
}

Status BindFile(const ShmAddress& address, int socket) {
  const DirectoryLock lock(address.name);
  const SocketAddress target = ToSocketAddress(address);
  if (bind(socket, target.get(), target.size) != 0) {
    if (errno != EADDRINUSE) return SystemError("listen at " + address.name);
    NACRE_RETURN_IF_ERROR(RemoveStaleSocket(address));
    if (bind(socket, target.get(), target.size) != 0) {
      return SystemError("listen at " + address.name);
    }
  }
  // This happens under the lock, since a bound socket that does not listen yet looks stale.
  if (listen(socket, kBacklog) != 0) return SystemError("listen at " + address.name);
  return Status::OK();
}

Status BindAbstract(ShmAddress* address, int socket) {
  const SocketAddress target = ToSocketAddress(*address);
  if (bind(socket, target.get(), target.size) != 0) {
    if (errno == EADDRINUSE) {
      return Status::Busy("@" + address->name + ": another process listens there");
    }
    return SystemError("listen at @" + address->name);
  }
  if (address->name.empty()) {
    SocketAddress chosen;
    chosen.size = sizeof(chosen.address);
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&chosen.address), &chosen.size) != 0) {
      return SystemError("getsockname");
    }
    address->name.assign(chosen.address.sun_path + 1,
                         chosen.size - offsetof(sockaddr_un, sun_path) - 1);
  }
  if (listen(socket, kBacklog) != 0) return SystemError("listen at @" + address->name);
  return Status::OK();
}

Status PeerClosed() { return Status::Unavailable("the peer closed the connection"); }

}  // namespace

std::string ShmAddress::ToString(const char* scheme) const {
  return std::string(scheme) + (abstract ? ":@" : ":") + name;
}

Status ParseShmAddress(const std::string& text, ShmAddress* address) {
  std::string rest = text;
  for (const char* scheme : {"shm:", "cxl:", "embedded:"}) {
    if (rest.starts_with(scheme)) {
      rest.erase(0, std::strlen(scheme));
      break;
    }
  }
  if (rest.empty()) return Status::InvalidArgument("address '" + text + "': no path and no @name");
  address->abstract = rest[0] == '@';
  address->name = address->abstract ? rest.substr(1) : rest;
  if (address->name.find('\0') != std::string::npos) {
    return Status::InvalidArgument("address '" + text + "': contains a zero byte");
  }
  if (!address->abstract && rest.find('/') == std::string::npos) {
    return Status::InvalidArgument("address '" + text + "': neither a path with '/' nor an @name");
  }
  if (rest.size() >= sizeof(sockaddr_un::sun_path)) {
    return Status::InvalidArgument("address '" + text + "': longer than " +
                                   std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes");
  }
  return Status::OK();
}

Status ListenOn(ShmAddress* address, UniqueFd* socket) {
  *socket = NewSocket();
  if (!socket->valid()) return SystemError("socket");
  return address->abstract ? BindAbstract(address, socket->get())
                           : BindFile(*address, socket->get());
}

void StopListening(const ShmAddress& address, int socket) {
  if (address.abstract) {
    shutdown(socket, SHUT_RDWR);
    return;
  }
  const DirectoryLock lock(address.name);
  shutdown(socket, SHUT_RDWR);
  struct stat attributes;
  if (lstat(address.name.c_str(), &attributes) == 0 && S_ISSOCK(attributes.st_mode) &&
      !HasListener(address)) {
    unlink(address.name.c_str());
  }
}

Status ConnectTo(const ShmAddress& address, const Deadline& deadline, UniqueFd* socket) {
  const std::string name = address.ToString("shm");
  if (address.abstract && address.name.empty()) {
    return Status::InvalidArgument(name + ": names no listener");
  }
  *socket = NewSocket();
  if (!socket->valid()) return SystemError("socket");
  const SocketAddress target = ToSocketAddress(address);
  while (connect(socket->get(), target.get(), target.size) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Status::Unavailable(name + ": " + std::strerror(errno));
    // The listener's backlog is full.
    if (deadline.Expired()) {
      return Status::Unavailable(name + ": the listener did not answer in time");
    }
    deadline.clock()->SleepFor(std::chrono::milliseconds(1));
  }
  return Status::OK();
}

ReceiveResult Receive(int socket, Packet* packet) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control;
  iovec vector{.iov_base = packet->data.data(), .iov_len = packet->data.size()};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t received;
  do {
    received = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // A peer that closes with packets of ours unread leaves ECONNRESET, which is told once, and
    // before the packets that it sent.
  } while (received < 0 && (errno == EINTR || errno == ECONNRESET));
  if (received < 0 && errno == EAGAIN) return ReceiveResult::kNothing;
  if (received <= 0) return ReceiveResult::kClosed;
  packet->size = static_cast<size_t>(received);
  packet->fds.clear();
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      packet->fds.emplace_back(fd);
    }
  }
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0) return ReceiveResult::kMessage;
  packet->fds.clear();
  return ReceiveResult::kMalformed;
}

Status ReceiveBy(int socket, const Deadline& deadline, Packet* packet) {
  while (true) {
    switch (Receive(socket, packet)) {
      case ReceiveResult::kMessage:
        return Status::OK();
      case ReceiveResult::kClosed:
        return PeerClosed();
      case ReceiveResult::kMalformed:
        return Status::InvalidArgument("a message longer than any");
      case ReceiveResult::kNothing:
        break;
    }
    if (deadline.Expired()) return Status::TimedOut("the peer did not answer in time");
    WaitFor(socket, POLLIN, deadline.Remaining());
  }
}

Status SendBy(int socket, const Deadline& deadline, const void* message, size_t size,
              const std::vector<int>& fds) {
  assert(fds.size() <= kMaxFds);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
  iovec vector{.iov_base = const_cast<void*>(message), .iov_len = size};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
  }
  while (sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    const int reason = errno;
    if (reason == EINTR) continue;
    // ETOOMANYREFS: this user has too many descriptors in flight until peers take some out.
    if (reason != EAGAIN && reason != ETOOMANYREFS) return PeerClosed();
    if (deadline.Expired()) return Status::TimedOut("the peer does not read its socket");
    if (reason == EAGAIN) {
      WaitFor(socket, POLLOUT, deadline.Remaining());
    } else {
      deadline.clock()->SleepFor(std::chrono::milliseconds(1));
    }
  }
  return Status::OK();
}

}  // namespace nacre::rdma
