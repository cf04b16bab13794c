#pragma once

#include <memory>
#include <string>

#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::rdma {

/// A network card's delays, added to a backend that has none, so that the hiding of latency can be
/// measured on one machine.
struct NicModel {
  double rtt_us = 0;     ///< Round trip of an empty request.
  double gbps = 0;       ///< Gbit/s in each direction; 0: without bound.
  double port_gbps = 0;  ///< The same of the port of each peer.
  /// File by which processes share the peers' ports (nic_ports.h); empty: each has them to itself.
  std::string ports{};
};

/// Wraps `inner`. A request completes at the earliest `rtt_us` after it has been serialised onto
/// the link, which is shared by all queue pairs of this device: reads occupy its incoming half,
/// writes and sends its outgoing half, at `gbps` each. The peer's port is occupied likewise, for
/// `port_gbps`, by all who name the same `ports`. A message arrives half a round trip late.
///
/// What the model leaves out: bytes appear in the target's memory at once, so a reply that is
/// polled in memory (rather than received) is not delayed.
/// `InvalidArgument` for a negative number, `IOError` for ports that cannot be shared. `clock`
/// outlives the device.
Status WrapWithNic(std::unique_ptr<Device> inner, const NicModel& model, Clock* clock,
                   std::unique_ptr<Device>* device);

}  // namespace nacre::rdma
