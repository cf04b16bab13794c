#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "pool/connect/node_pace.h"
#include "pool/pool_client.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// How one node has answered a client of late (pool/connect/pool_pace.h).
struct NodePaceReport {
  enum class State : uint8_t { kWell, kSlow, kDown, kLost };
  struct Times {
    uint64_t operations = 0;  ///< In the last few seconds; older ones count for less.
    std::chrono::nanoseconds p50{0};
    std::chrono::nanoseconds p99{0};
  };

  NodeId node = kNoNode;
  std::string address;
  State state = State::kWell;
  uint64_t times_slow = 0;                   ///< How often it has become slow.
  uint64_t late = 0;                         ///< Waits that were longer than the pool's patience.
  std::array<Times, kNodeOperations> times;  ///< By NodeOperation.

  /// "slow (3 times, late 7), read 12 us, 99 % 40 us; write ..."
  std::string ToString() const;
};

/// "well", "slow", "down" or "lost".
const char* NameOf(NodePaceReport::State state);

/// One for each node of the pool so far, by number.
std::vector<NodePaceReport> ReportPace(const PoolClient& client);

}  // namespace nacre::pool
