#pragma once

#include <string>

#include "nacre/status.h"
#include "pool/serve/server_connection.h"
#include "sharding/remote/member_request.pb.h"

namespace nacre {

/// What a secret of the pool lets its holder ask of a member of `keyspace`: all that changes
/// nothing, and the rest if it may write to the database of the keyspace's map. `NotSupported`
/// naming the secret, its right and the one that is missing.
Status CheckMemberRight(const sharding::MemberRequest& request,
                        const pool::ServerConnection& connection, const std::string& keyspace);

}  // namespace nacre
