#pragma once

#include <sys/types.h>

#include <cstddef>
#include <ostream>

namespace nacre {

/// What a process holds, by what the kernel tells: all zero for one that has gone.
struct ProcessUsage {
  size_t descriptors = 0;
  size_t sockets = 0;  ///< Among the descriptors.
  size_t threads = 0;
  size_t shared_mappings = 0;  ///< Memory of files and of other processes' regions.
  /// Queue pairs, regions, completion queues, protection domains and connections of RDMA devices,
  /// by what the kernel tells ("rdma resource"); 0 where there is no such device.
  /// Counting takes many milliseconds.
  size_t rdma_resources = 0;
  size_t resident_bytes = 0;

  /// Whether nothing that is counted piece by piece is more than `other` has: memory is not, which
  /// an allocator keeps as it likes.
  bool Within(const ProcessUsage& other) const {
    return descriptors <= other.descriptors && sockets <= other.sockets &&
           threads <= other.threads && shared_mappings <= other.shared_mappings &&
           rdma_resources <= other.rdma_resources;
  }
};

std::ostream& operator<<(std::ostream& out, const ProcessUsage& usage);

/// Without the RDMA resources.
ProcessUsage UsageOf(pid_t process);

/// What the process holds once it has not changed that for a while, a few seconds at most.
ProcessUsage UsageAtRest(pid_t process);

/// What ends, ends a little after its owner said so (a socket when the other end has seen it):
/// waits until the process holds no more than `limit`, for half a minute at most. Returns what it
/// holds then.
ProcessUsage AwaitUsage(pid_t process, const ProcessUsage& limit);

}  // namespace nacre
