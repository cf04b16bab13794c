#pragma once

#include <string>

#include "metrics/page.h"
#include "pool/pool_client.h"

namespace nacre {

/// Adds what `client` knows of the nodes of its pool, without asking them, to a page. `role`: what
/// the database is that it belongs to, "owner" or "follower".
void CollectNodes(const pool::PoolClient& client, const metrics::Labels& labels,
                  const std::string& role, metrics::Page* page);

}  // namespace nacre
