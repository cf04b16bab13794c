#pragma once

#include <memory>

#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::rdma {

/// A network card's delays, added to a backend that has none, so that the hiding of latency can be
/// measured on one machine.
struct NicModel {
  double rtt_us = 0;  ///< Round trip of an empty request.
  double gbps = 0;    ///< Gbit/s in each direction; 0: without bound.
};

/// Wraps `inner`. A request completes at the earliest `rtt_us` after it has been serialised onto
/// the link, which is shared by all queue pairs of this device: reads occupy its incoming half,
/// writes and sends its outgoing half, at `gbps` each. A message arrives half a round trip late.
///
/// What the model leaves out: bytes appear in the target's memory at once, so a reply that is
/// polled in memory (rather than received) is not delayed; and the link of the peer is not shared
/// with its other peers.
/// `InvalidArgument` for a negative number. `clock` outlives the device.
Status WrapWithNic(std::unique_ptr<Device> inner, const NicModel& model, Clock* clock,
                   std::unique_ptr<Device>* device);

}  // namespace nacre::rdma
