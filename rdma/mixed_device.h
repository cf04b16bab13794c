#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::rdma {

/// One device over several transports, for processes that reach their peers over different ones. It
/// only connects, each time over the device whose scheme the address begins with.
///
/// Its regions are local: registered with each of the devices, so that any queue pair may use them.
/// Memory that a peer is to reach is registered with the one device that leads to the peer
/// (Device::ForPeer). Its completion queues poll a queue of each device in turn; to wait for
/// several at once they look at one after the other, 2 ms each.
///
/// `schemes` names each one once. A parameter "SCHEME.NAME" goes to that device as NAME, another
/// one to all.
Status OpenMixedDevice(const std::vector<std::string>& schemes, const DeviceOptions& options,
                       Clock* clock, std::unique_ptr<Device>* device);

}  // namespace nacre::rdma
