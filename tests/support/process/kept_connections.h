#pragma once

#include <sys/types.h>

#include <vector>

#include "rdma/unique_fd.h"

namespace nacre {

/// Holds on to another process's connection manager over verbs. Killed then, it ends as by the loss
/// of its host's power: the kernel takes its queue pairs and regions, but tells no peer; nor does
/// it give an address free at which it listened, before this object goes away. Over other
/// transports a kill is noticed nevertheless.
class KeptConnections {
 public:
  /// Keeps those of a process of the same user. Failure fails the test.
  explicit KeptConnections(pid_t process);

 private:
  std::vector<rdma::UniqueFd> descriptors_;
};

}  // namespace nacre
