#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "table/format/placement.h"

namespace nacre::pool {

/// The nodes that a database lies on as long as they have room: as few as its widest redundancy
/// takes, so that what a job reads and writes lies where it runs. A member that has no room or does
/// not live any more is replaced by the node that took its place.
///
/// Thread safety: none.
class HomeNodes {
 public:
  /// What is known of a node when the home is chosen.
  struct Candidate {
    NodeId node = kNoNode;
    NodeId domain = kNoNode;  ///< As PoolClient::Domains.
    uint64_t used_bytes = 0;  ///< Those that the database has there.
    uint64_t leased = 0;      ///< Slabs that any database has there.
    uint64_t slabs = 0;
  };
  /// Chooses `count` nodes of different domains: those that hold most of the database, then those
  /// of which the least part is leased, then by chance, which `database_id` decides.
  void Choose(uint64_t database_id, std::vector<Candidate> candidates, size_t count);

  /// There is none: all nodes are alike.
  bool empty() const { return nodes_.empty(); }
  size_t size() const { return nodes_.size(); }
  bool Contains(NodeId node) const;
  /// There is one, and the node is not in it.
  bool Excludes(NodeId node) const { return !empty() && !Contains(node); }
  const std::vector<NodeId>& nodes() const { return nodes_; }
  /// What was to lie here lies on `placement`: nodes of it that are no members become ones in place
  /// of members for which `failed` answers true.
  void Move(const Placement& placement, const std::function<bool(NodeId)>& failed);

 private:
  std::vector<NodeId> nodes_;
};

}  // namespace nacre::pool
