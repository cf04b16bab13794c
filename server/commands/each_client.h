#pragma once

#include <functional>

#include "nacre/task.h"
#include "server/session/server_state.h"

namespace nacre::server {

/// Calls `work` with each client of the server, on the client's loop; it may close the client.
Task<void> ForEachClient(Call& call, std::function<void(Client*, LoopState*)> work);

}  // namespace nacre::server
