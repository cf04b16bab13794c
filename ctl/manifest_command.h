#pragma once

#include <string>

#include "nacre/status.h"
#include "pool/pool_client.h"

namespace nacre::ctl {

/// Prints root and manifest of a database: its owner, where the replicas lie, the image, the edits,
/// tables and log segments. It only reads, also while the database is open; then it shows a recent
/// state. Failures are those of ViewDatabase.
Status PrintManifest(pool::PoolClient* client, const std::string& name, bool json);

}  // namespace nacre::ctl
