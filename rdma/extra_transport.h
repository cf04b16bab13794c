#pragma once

#include <memory>

#include "nacre/status.h"
#include "rdma/transport.h"

namespace nacre::rdma {

/// A transport that the library has not got: tests bring the one of their simulations.
struct ExtraTransport {
  const char* scheme;
  Status (*open)(const DeviceOptions& options, std::unique_ptr<Device>* device);
};

/// Has OpenDevice know this transport beside the library's own, from now on; null: none.
/// `transport` stays until it is replaced. Any thread.
void SetExtraTransport(const ExtraTransport* transport);

}  // namespace nacre::rdma
