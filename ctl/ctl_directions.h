#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "ctl/ctl_report.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/wire/database_report.h"
#include "pool/wire/node_stats.h"

// How nacre-ctl tells the nodes of a pool what is wanted of its databases.

namespace nacre::ctl {

/// Has every node that can be reached take over what `change` makes of the latest directions.
/// `Unavailable` if no node can be reached, `Busy` if another process keeps changing them.
Status ChangeDirections(pool::PoolClient* client,
                        const std::function<void(pool::Directions*)>& change);

/// Whether `name` means the node: by its address, its address without the scheme, or its position.
bool IsNamed(const pool::PoolClient& client, NodeId node, const std::string& name);
/// The node that `name` means: its address, its address without the scheme, or its position.
/// `InvalidArgument` if there is none, `Unavailable` if it does not answer.
Status FindNode(pool::PoolClient* client, const std::string& name, NodeId* node,
                pool::NodeStats* stats);

/// Has all fragments leave the node, or no longer.
Status SetDraining(pool::PoolClient* client, const pool::NodeStats& node, bool draining);

/// Waits until `node` holds nothing: shows every `period` what it still holds, and which databases
/// stay because no process has them open. `Unavailable` if the node is lost, `Aborted` if the order
/// is withdrawn.
Status AwaitDrained(pool::PoolClient* client, NodeId node, std::chrono::milliseconds period);

}  // namespace nacre::ctl
