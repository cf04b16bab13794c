#pragma once

#include <memory>
#include <string>

#include "nacre/status.h"
#include "rdma/transport.h"
#include "util/clock.h"
#include "util/uri.h"

namespace nacre::pool {

// A pool's nodes may be reached over different transports: then its scheme is "mixed", and each
// address says its own:
//
//     mixed:shm:/run/nacre/n0.sock,tcp:10.0.0.2:7000,verbs:10.1.0.3:7000?verbs.device=mlx5_0

inline constexpr char kMixedScheme[] = "mixed";

/// "shm:/run/n0.sock", whatever kind of pool node `i` is of.
std::string NodeAddress(const Uri& pool, size_t i);

/// Paths of nodes over shm: the nodes find one another by them, from other directories.
void MakePathsAbsolute(Uri* pool);

/// The device, or the mixed device, that leads to all nodes of the pool. `InvalidArgument` naming
/// the address that says no transport, or one that no other process can reach.
Status OpenPoolDevice(const Uri& pool, const rdma::DeviceOptions& options, Clock* clock,
                      std::unique_ptr<rdma::Device>* device);

}  // namespace nacre::pool
