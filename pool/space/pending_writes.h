#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pool/pool_client.h"
#include "table/format/placement.h"

namespace nacre::pool {

// Writes that may still be stored, though no thread of this client waits for them: those of a job
// that a node was asked to run, and those of this client that it has given up. Space that they may
// go to must not be used again. Any thread may call.

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

/// Asks the nodes that are open in each of `jobs` to end it there, and closes those that have, or
/// that are lost. Bounded by a second or so; nodes that do not answer stay open.
void EndJobs(PoolClient* client, uint64_t database_id, std::vector<JobEnd>* jobs);

/// Whether writes that were given up may still be stored on the node
/// (pool/connect/abandoned_writes.h). One load as a rule.
bool MayStillWriteOn(const PoolClient* client, NodeId node);
/// Has the nodes end the connections of such writes. Bounded by a second or so; MayStillWriteOn
/// tells of those that have not answered.
void EndAbandonedWrites(PoolClient* client);

}  // namespace nacre::pool
