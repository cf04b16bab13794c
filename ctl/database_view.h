#pragma once

#include <map>
#include <string>
#include <vector>

#include "db/manifest/manifest_recovery.h"
#include "db/manifest/manifest_state.h"
#include "nacre/status.h"
#include "pool/databases.h"
#include "pool/pool_client.h"
#include "table/format/placement.h"

namespace nacre::ctl {

/// A database as it was at one moment, seen by a process that does not own it.
struct DatabaseView {
  std::string name;
  pool::DatabaseRoot root;
  std::vector<pool::RootCopy> root_copies;
  /// As its owner numbers the nodes.
  ManifestRecovered manifest;
  /// The same as this client numbers them; what is on nodes that it has not got is on kLostNode.
  ManifestState state;
};

/// Reads root and manifest, and writes nothing. While an owner writes, what is read may be torn:
/// then it is read again, a few times. `NotFound` if there is no such database, `Corruption` if the
/// manifest is damaged in all copies (of a database that is open: or if it changed each time it was
/// read, which the message says), `Unavailable` if too few nodes answer.
Status ViewDatabase(pool::PoolClient* client, const std::string& name, DatabaseView* view);

/// "shm:/run/n0.sock", or "the node with instance 0123456789abcdef" if that is not in the pool.
std::string NameOfInstance(const pool::PoolClient& client, uint64_t instance_id);
/// The present number of the live node with that instance; kLostNode if there is none.
NodeId FindInstance(const pool::PoolClient& client, uint64_t instance_id);

}  // namespace nacre::ctl
