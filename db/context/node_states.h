#pragma once

#include <vector>

#include "table/format/placement.h"

namespace nacre {

/// What one look at the nodes shows, by node.
struct NodeStates {
  std::vector<bool> alive;
  std::vector<bool> draining;
  /// They may be away for a while, with all that they have.
  std::vector<bool> maintenance{};
  /// They came back from it a moment ago: old connections may still break.
  std::vector<bool> returned{};

  bool Alive(NodeId node) const { return node < alive.size() && alive[node]; }
  bool Draining(NodeId node) const { return node < draining.size() && draining[node]; }
  bool InMaintenance(NodeId node) const { return node < maintenance.size() && maintenance[node]; }
  /// Whether what is on it is awaited if it is not alive.
  bool Awaited(NodeId node) const {
    return InMaintenance(node) || (node < returned.size() && returned[node]);
  }
  /// Alive, and to be used for what is new.
  bool Takes(NodeId node) const { return Alive(node) && !Draining(node) && !InMaintenance(node); }
  bool operator==(const NodeStates&) const = default;
};

}  // namespace nacre
