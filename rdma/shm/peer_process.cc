#include "rdma/shm/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "rdma/memory.h"
#include "rdma/wait.h"

namespace nacre::rdma {

// The system calls are made by number, as the C library's wrappers are younger.

PeerProcess PeerProcess::Of(int socket) {
  PeerProcess result;
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return result;
  if (credentials.pid <= 0) return result;
  result.id_ = credentials.pid;
  if (!result.is_this_process()) {
    result.fd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, credentials.pid, 0)));
  }
  return result;
}

PeerProcess PeerProcess::Again() const {
  PeerProcess result;
  result.id_ = id_;
  if (fd_.valid()) result.fd_ = UniqueFd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  return result;
}

bool PeerProcess::is_this_process() const { return id_ == getpid(); }

bool PeerProcess::Stopped() const {
  if (!fd_.valid()) return false;
  // "number (name) state ...", where the name may hold anything.
  std::string line;
  std::getline(std::ifstream("/proc/" + std::to_string(id_) + "/stat"), line);
  const size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  const char state = line[name_end + 2];
  // Looked at afterwards: until it ended, the number was its own.
  return (state == 'T' || state == 't') && !Ended();
}

Status PeerProcess::Kill() const {
  if (!fd_.valid()) return Status::IOError("the system does not say which process it is");
  if (syscall(SYS_pidfd_send_signal, fd_.get(), SIGKILL, nullptr, 0) != 0) {
    return SystemError("kill process " + std::to_string(id_));
  }
  return Status::OK();
}

bool PeerProcess::AwaitEnd(std::chrono::nanoseconds timeout) const {
  // A pidfd becomes readable when the last thread has ended.
  return fd_.valid() && WaitFor(fd_.get(), POLLIN, timeout);
}

}  // namespace nacre::rdma
