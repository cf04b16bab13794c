#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "table/format/placement.h"

namespace nacre::pool {

/// The places where a job that a node was asked to run may still write. A node counts as open from
/// before the job is begun there until it has said that the job writes there no more, so silence,
/// of whatever kind, leaves it open. Space of the job's outputs on an open node must not be reused.
struct JobEnd {
  uint64_t job_id = 0;
  std::vector<NodeId> open;

  /// The job may be forgotten.
  bool ended() const { return open.empty(); }
  bool MayWriteOn(NodeId node) const {
    return std::find(open.begin(), open.end(), node) != open.end();
  }
};

}  // namespace nacre::pool
