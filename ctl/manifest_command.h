#pragma once

#include <string>

#include "nacre/status.h"
#include "pool/pool_client.h"

namespace nacre::ctl {

/// Prints root and manifest of a database: who owns it, where the copies lie, the image, the edits,
/// tables and log segments. Reads only, also while the database is open; then it is what was so a
/// moment ago. Failures as those of ViewDatabase.
Status PrintManifest(pool::PoolClient* client, const std::string& name, bool json);

}  // namespace nacre::ctl
