#pragma once

#include <memory>
#include <string>

#include "nacre/status.h"

namespace nacre {

/// A set of memory nodes, named by a URI:
///
///     embedded:?nodes=4&size=1GiB    nodes inside this process, gone with this object
///     shm:/run/n0.sock,/run/n1.sock  `nacre-memnode` processes of this host
///
/// Optional parameters after `?`: `nodes` and `size` (bytes per node) for embedded pools;
/// `rtt_us` and `gbps` put the NIC model before every node.
///
/// Databases opened through one `Pool` share nothing but the nodes. An embedded pool keeps the
/// data of closed databases as long as the object lives, so they can be opened again.
/// Thread safety: all methods may be called from many threads at once.
class Pool {
 public:
  /// `InvalidArgument` for a malformed URI or an unknown scheme, `Unavailable` for a node that
  /// cannot be reached or speaks another protocol version, `NoSpace` for embedded nodes larger
  /// than the memory of this machine.
  static Status Open(const std::string& uri, std::shared_ptr<Pool>* pool);

  virtual ~Pool() = default;
  virtual const std::string& uri() const = 0;
  virtual int node_count() const = 0;
};

}  // namespace nacre
