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

/// Tells `node` how a database of this client is, and hears what is wanted of all databases, and
/// which readers its log has. `NotSupported` by an earlier version.
Status ReportDatabase(PoolClient* client, NodeId node, const DatabaseReport& report,
                      Directions* directions, std::vector<LogReader>* log_readers = nullptr);
/// The nodes that are alive.
std::vector<NodeId> LiveNodes(const PoolClient& client);
/// Tells nodes how far `reader` (0: it only asks) has come with a database's log, and hears of all
/// its readers, as each node knows them. The failure of one of
/// them, if none was told.
Status AcknowledgeLog(PoolClient* client, const std::vector<NodeId>& nodes, uint64_t database_id,
                      uint64_t reader, uint64_t sequence, bool restorable,
                      std::vector<LogReader>* log_readers);
/// The databases that `node` knows, what is wanted of them, and, if `clients` is not null, which
/// clients are connected to the node; none are told by a node of protocol version 8.
Status ListDatabases(PoolClient* client, NodeId node, std::vector<KnownDatabase>* databases,
                     Directions* directions, std::vector<ConnectedClient>* clients = nullptr);
/// What is wanted of all databases, as `node` knows it; one that is late is not waited for
/// (`TimedOut`).
Status GetDirections(PoolClient* client, NodeId node, Directions* directions);
/// Has `node` take over `wanted` unless it has directions of the same or a later version.
/// `*directions`: what it has now.
Status SetDirections(PoolClient* client, NodeId node, const Directions& wanted,
                     Directions* directions);

}  // namespace nacre::pool
