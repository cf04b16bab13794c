#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/task.h"
#include "server/session/command.h"

// Commands of clients that know no clusters (Client::Origin::kProxied) on keys of other servers:
// those servers run them. What a connection keeps does not go along: the commands that wait for
// keys, watch them or listen to sharded channels are run only by the server that has them.

namespace nacre::server {

/// Why the call cannot be run by another server, which has the slot; empty: it can.
std::string RefusalToForward(const Call& call, uint32_t slot);

/// Has the server run calls of one client in their order. Those that it has not run, as it has not
/// got their keys or cannot be reached, are Call::elsewhere afterwards; the others are answered.
Task<void> Forward(int64_t server, std::vector<Call*> calls);

/// Answers what another server asks of this one. Blocks; not on a loop.
Status AnswerServer(ServerState* server, const Slice& request, std::string* answer);

}  // namespace nacre::server
