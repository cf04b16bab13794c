#pragma once

#include <vector>

#include "nacre/status.h"
#include "pool/connect/node_requests.h"
#include "pool/pool_client.h"
#include "pool/wire/database_report.h"
#include "pool/wire/node_stats.h"
#include "table/format/placement.h"

namespace nacre::pool {

// What nodes report of themselves and of the databases on them, and what they are told for those
// that observe the pool. Failures name the node; any thread may call.

Status GetStats(PoolClient* client, NodeId node, NodeStats* stats,
                NodeRequests::Late late = NodeRequests::Late::kAwaited);

/// Tells `node` how a database of this client is, and hears what is wanted of all databases.
/// `NotSupported` by an earlier version.
Status ReportDatabase(PoolClient* client, NodeId node, const DatabaseReport& report,
                      Directions* directions);
/// The databases that `node` knows, and what is wanted of them.
Status ListDatabases(PoolClient* client, NodeId node, std::vector<KnownDatabase>* databases,
                     Directions* directions);
/// Has `node` take over `wanted` unless it has directions of the same or a later version.
/// `*directions`: what it has now.
Status SetDirections(PoolClient* client, NodeId node, const Directions& wanted,
                     Directions* directions);

}  // namespace nacre::pool
