#pragma once

#include <cstdint>

#include "tests/support/sim/sim_scheduler.h"
#include "tests/support/sim_transport/network.h"

namespace nacre::sim {

/// A simulation in the test's own process, with a network: for tests of the transport, in which no
/// process is killed.
class Network {
 public:
  explicit Network(uint64_t seed) : scheduler_({.seed = seed}), network_(&scheduler_, {}) {}

 private:
  Scheduler scheduler_;
  rdma::SimNetwork network_;
};

}  // namespace nacre::sim
