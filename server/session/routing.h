#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/task.h"
#include "server/session/command.h"

namespace nacre::server {

/// Runs the commands of one client as Execute does: in a cluster on the shards that have their
/// keys, each shard's by themselves. Those on keys that another server has are answered so. Where
/// none has them, as they are going from one server to another, this waits for a while.
Task<void> ExecuteWhereTheKeysAre(std::vector<Call*> calls);

/// Why a command cannot be run in a cluster, as far as that can be said without waiting: such as
/// that its keys are of several slots, or another server's. Empty: it may be. Without a cluster it
/// is.
std::string RefusalInCluster(const Call& call);
/// Whether a command within `call`, such as one of a script, is on keys that the call may use.
bool HasKeysOf(const Call& call, const Call& part);

/// What a client is told that is to go to the server which has the slot; one that knows no clusters
/// cannot, and is told so.
std::string RedirectionOf(const Call& call, uint32_t slot);

}  // namespace nacre::server
