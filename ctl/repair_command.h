#pragma once

#include <string>

#include "db/salvage/salvage.h"
#include "nacre/status.h"
#include "pool/pool_client.h"

namespace nacre::ctl {

/// Makes the manifest of a database anew (db/salvage/salvage.h), prints what was found, and
/// what fsck finds then. `*exit_status`: that of fsck; of a dry run 1 if the plan lacks something.
/// Failures as those of SalvageDatabase; what had been found until then is printed.
Status Repair(pool::PoolClient* client, const std::string& name, const SalvageOptions& options,
              bool json, int* exit_status);

}  // namespace nacre::ctl
