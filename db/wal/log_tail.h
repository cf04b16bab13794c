#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/wal/log_segments.h"
#include "nacre/status.h"
#include "pool/pool_client.h"

namespace nacre {

/// The records of `segment` from `begin` to `end`, where the log ends: what its writer had under
/// way when it died, and which some copies may lack. Who goes on with the log takes them for its
/// own, so they have to bear the loss of nodes as all others do: writes them to the copies that
/// lack any, and are on nodes that live. (An owner that lives writes them once more; this one can
/// do so in place, as nobody else writes there any more.)
///
/// `Unavailable` naming a node that lives and could not be read or written. Nodes that are lost
/// meanwhile are told of in `notes`.
Status CompleteLogTail(pool::PoolClient* client, uint64_t database_id, const LogSegment& segment,
                       uint64_t begin, uint64_t end, std::vector<std::string>* notes);

}  // namespace nacre
