#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "nacre/status.h"

namespace nacre::rdma {

/// One direction of a link in the NIC model. All bits zero: nothing is on its way.
///
/// Thread safety: all methods may be called from many threads, and processes that share it.
class HalfLink {
 public:
  /// Queues `bytes` behind what is on the way; returns when the last of them has left.
  uint64_t Occupy(uint64_t now, uint64_t bytes, double nanos_per_byte) {
    if (nanos_per_byte == 0) return now;
    const auto duration =
        static_cast<uint64_t>(std::ceil(static_cast<double>(bytes) * nanos_per_byte));
    uint64_t free_at = free_at_.load(std::memory_order_relaxed);
    uint64_t end;
    do {
      end = std::max(now, free_at) + duration;
    } while (!free_at_.compare_exchange_weak(free_at, end, std::memory_order_relaxed));
    return end;
  }

 private:
  std::atomic<uint64_t> free_at_{0};
};

/// As seen from this end: what it reads comes in.
struct Link {
  alignas(64) HalfLink incoming;
  alignas(64) HalfLink outgoing;
};

/// The links of peers, of all processes of this host that name the same file.
///
/// Thread safety: all methods may be called from many threads.
class NicPorts {
 public:
  /// `path`: of the file, which is made if it is not there, and never removed; empty: the links are
  /// this object's own. `IOError` if it cannot be made or mapped.
  static Status Open(const std::string& path, std::unique_ptr<NicPorts>* ports);
  ~NicPorts();
  NicPorts(const NicPorts&) = delete;
  NicPorts& operator=(const NicPorts&) = delete;

  /// The link of the peer of this name, as long as this object lives. There is room for as many as
  /// a pool may have nodes; more of them share links.
  Link* Of(const std::string& peer);

 private:
  struct Port {
    std::atomic<uint64_t> peer{0};  ///< Hash of the name; 0: free. Never changes once it is set.
    Link link;
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "processes share them");
  static constexpr size_t kPorts = 2048;

  explicit NicPorts(Port* ports) : ports_(ports) {}

  Port* const ports_;
};

}  // namespace nacre::rdma
