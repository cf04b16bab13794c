#pragma once

#include <vector>

#include "table/format/placement.h"

namespace nacre {

/// What one look at the nodes shows, by node.
struct NodeStates {
  std::vector<bool> alive;
  std::vector<bool> draining;

  bool Alive(NodeId node) const { return node < alive.size() && alive[node]; }
  bool Draining(NodeId node) const { return node < draining.size() && draining[node]; }
  bool operator==(const NodeStates&) const = default;
};

}  // namespace nacre
