#pragma once

#include <memory>
#include <string>

#include "nacre/logger.h"
#include "nacre/status.h"

namespace nacre {

struct PoolOptions {
  /// For applications that keep their secrets elsewhere than in files; empty: as said at
  /// Pool. Not together with the URI's `secret_file`.
  std::string secret{};
  /// Told of peers that were refused and of a secret file that everybody may read; null: nobody.
  std::shared_ptr<Logger> info_log{};
};

/// A set of memory nodes, named by a URI:
///
///     embedded:?nodes=4&size=1GiB    nodes inside this process, gone with this object
///     shm:/run/n0.sock,/run/n1.sock  `nacre-memnode` processes of this host
///
/// Optional parameters after `?`: `nodes` and `size` (bytes per node) for embedded pools;
/// `rtt_us` and `gbps` put the NIC model before every node; `secret_file` names the file with the
/// pool's secret.
///
/// The members of a pool prove to one another that they know its secret; who does not is served
/// nothing. It is what `PoolOptions::secret` says, else what is in the file that `secret_file` or
/// the environment's NACRE_SECRET_FILE names, else NACRE_SECRET in the environment, else none.
///
/// Databases opened through one `Pool` share nothing but the nodes. An embedded pool keeps the
/// data of closed databases as long as the object lives, so they can be opened again.
/// Thread safety: all methods may be called from many threads at once.
class Pool {
 public:
  /// `InvalidArgument` for a malformed URI or an unknown scheme, `Unavailable` for a node that
  /// cannot be reached, does not know the secret or speaks another protocol version, `NoSpace` for
  /// embedded nodes larger than the memory of this machine, `IOError` for a secret file that cannot
  /// be read.
  static Status Open(const std::string& uri, const PoolOptions& options,
                     std::shared_ptr<Pool>* pool);
  static Status Open(const std::string& uri, std::shared_ptr<Pool>* pool) {
    return Open(uri, PoolOptions(), pool);
  }

  virtual ~Pool() = default;
  virtual const std::string& uri() const = 0;
  virtual int node_count() const = 0;
};

}  // namespace nacre
