#pragma once

#include <vector>

#include "nacre/task.h"
#include "server/session/command.h"

namespace nacre::server {

/// Runs the commands of one client on the database that they all name (Call::access), one after the
/// other, from their locks to their answers: one read finds the meta rows of several, and one write
/// makes all their changes. These are as durable as the database has it when this ends, or each
/// answer is an error.
Task<void> Execute(std::vector<Call*> calls);

/// The same for one command on all keys, in several databases: each is read, and changed at once,
/// by itself.
Task<void> ExecuteOnAll(Call* call, const std::vector<const StoreAccess*>& stores);

/// The client is within no MULTI any more, and watches nothing.
void EndTransaction(Call* call);

/// What a client is told of a failure of the database.
std::string ErrorText(const Status& status);

}  // namespace nacre::server
