#pragma once

#include <map>
#include <memory>
#include <string>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "rdma/secret_ring.h"
#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::pool {

/// How processes that use one pool protect what they ask of one another (peer_connection.h): as
/// what they ask of its nodes.
struct PeerSecurity {
  /// The secrets that they take of each other, the first of which they prove; of a file that is
  /// watched they follow it. Null: the pool has none.
  std::shared_ptr<rdma::SecretRing> ring{};
  std::string tls{};  ///< The parameter "tls" of tcp; empty: its default.
  std::shared_ptr<Logger> logger{};

  /// That of a pool whose device has these options.
  static Status Of(const rdma::DeviceOptions& pool, PeerSecurity* security);
};

/// Opens what leads to a process at `address`, or listens there: "tcp:10.0.0.1:7500".
/// `InvalidArgument` if that names no transport, or one without TLS where the pool encrypts all.
Status OpenPeerDevice(const std::string& address, const PeerSecurity& security, Clock* clock,
                      std::unique_ptr<rdma::Device>* device);

}  // namespace nacre::pool
