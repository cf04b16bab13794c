#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "rdma/unique_fd.h"

namespace nacre::rdma {

/// The yardstick of what goes over tcp to several nodes at once: blocking sockets of the loopback
/// device, each to a process of its own, which answers `ping_bytes` by `pong_bytes` and does
/// nothing else. Failures throw.
class BareSockets {
 public:
  BareSockets(size_t count, size_t ping_bytes, size_t pong_bytes);
  ~BareSockets();
  BareSockets(const BareSockets&) = delete;
  BareSockets& operator=(const BareSockets&) = delete;

  /// Sends to all, then receives from one after the other.
  void PingAll();

 private:
  struct Peer {
    UniqueFd socket;
    pid_t process = -1;
  };

  void Connect();

  std::vector<char> ping_;
  std::vector<char> pong_;
  std::vector<Peer> peers_;
};

}  // namespace nacre::rdma
