#pragma once

#include <chrono>

#include "server/session/server_state.h"

namespace nacre::server {

/// Removes keys that have expired, and elements of keys that are gone, from then on as long as the
/// loop runs: all that there is, and again after `rest`. Called on the loop.
void SweepRepeatedly(ServerState* server, LoopState* loop, std::chrono::milliseconds rest);

}  // namespace nacre::server
