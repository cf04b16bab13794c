#pragma once

#include <cstdint>
#include <string>

#include "db/salvage/salvage_plan.h"
#include "nacre/logger.h"
#include "nacre/status.h"
#include "pool/pool_client.h"

namespace nacre {

/// What a salvage may do.
struct SalvageOptions {
  bool dry_run = false;  ///< Change nothing, own nothing.
  /// Proceeds even if the manifest can be read, if its replicas may come back with nodes that do
  /// not answer, or if tables are lost.
  bool force = false;
  SalvageDefaults defaults{};
  Logger* log = nullptr;
};

/// What it found and did.
struct SalvageReport {
  uint64_t database_id = 0;
  std::string manifest;  ///< What is wrong with it; empty: it can be read.
  SalvagePlan plan;
  bool salvaged = false;  ///< A new manifest is in place.
};

/// Makes the manifest of a database anew from the footers of its tables and the headers of its log,
/// when all replicas of it, or what the root says of it, are damaged. Unless it is a dry run, the
/// database is taken over first, from a live owner too. The next opening replays the log.
///
/// OK: a new manifest is in place, or would be. It may be run again after a failure or a crash at
/// any moment: until the new root is set, nothing that a scan can find is changed. `NotFound` if
/// there is no such database; `InvalidArgument` if the manifest can be read, `Unavailable` if no
/// node that has a replica of it answers, or more nodes are missing than tables can do without,
/// `Corruption` if tables are lost (each: unless `force`);
/// failures of MakeSalvagePlan and of OpenDatabase. `*report` says how far it came.
Status SalvageDatabase(pool::PoolClient* client, const std::string& name,
                       const SalvageOptions& options, SalvageReport* report);

}  // namespace nacre
