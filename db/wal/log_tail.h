#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/wal/log_segments.h"
#include "nacre/status.h"
#include "pool/pool_client.h"

namespace nacre {

/// Completes the records of `segment` from `begin` to `end`, where the log ends: its writer had
/// them in flight when it died, so some replicas may lack them. The next owner takes them for its
/// own, so they have to bear the loss of nodes as all others do: they are written to the replicas
/// on live nodes that lack any. (A live owner writes them once more in a new segment; this one can
/// do so in place, as there is no other writer any more.)
///
/// `Unavailable` naming a node that lives and could not be read or written. Nodes that are lost
/// meanwhile are told of in `notes`.
Status CompleteLogTail(pool::PoolClient* client, uint64_t database_id, const LogSegment& segment,
                       uint64_t begin, uint64_t end, std::vector<std::string>* notes);

}  // namespace nacre
