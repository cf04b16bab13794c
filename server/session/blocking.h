#pragma once

#include <string>
#include <vector>

#include "nacre/task.h"
#include "server/session/command.h"

namespace nacre::server {

/// Takes the timeout of a command that blocks, in seconds; 0 is for ever. Answers an error and
/// false if it is malformed.
bool TimeoutArgument(Call& call, size_t at, double* seconds);

/// Calls `attempt`, with the command's locks held, until it has answered (true); after each time it
/// waits until one of `keys` was changed. Answers null after `seconds` (0: never), within EXEC, and
/// if the client has gone. Holds no locks while it waits.
Task<void> AttemptUntilAnswered(Call& call, std::vector<std::string> keys, double seconds,
                                Task<bool> (*attempt)(Call& call));
/// The same for a command that ends with its timeout, behind the keys.
Task<void> AttemptOnKeys(Call& call, Task<bool> (*attempt)(Call& call));

}  // namespace nacre::server
