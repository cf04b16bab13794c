#pragma once

#include <chrono>

#include "etcd/grpc_api.h"
#include "nacre/status.h"

namespace nacre {

// What all calls have in common: how times and outcomes of gRPC are told in ours. Thread safety:
// functions without state.

/// Has etcd refuse the call, and end it later, where the endpoint's member knows no leader.
void RequireLeader(grpc::ClientContext* context);

/// The point in time after `remaining`, or after an hour if that is earlier.
std::chrono::system_clock::time_point GrpcTime(std::chrono::nanoseconds remaining);

/// `Unavailable` or `TimedOut` where it is open whether etcd did what it was asked, and where it
/// has no leader; `NotFound` for a lease that has ended; `IOError` for what etcd refuses.
Status FromGrpc(const grpc::Status& status);

}  // namespace nacre
