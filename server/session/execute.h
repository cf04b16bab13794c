#pragma once

#include "nacre/task.h"
#include "server/session/command.h"

namespace nacre::server {

/// Runs a command from its locks to its answer. What it changes is as durable as the database has
/// it when this ends, or the answer is an error.
Task<void> Execute(Call* call);

/// Writes what the unit of work has changed, and tells those who watch the keys. The locks stay.
Task<void> WriteChanges(Call* call);

/// What a client is told of a failure of the database.
std::string ErrorText(const Status& status);

}  // namespace nacre::server
