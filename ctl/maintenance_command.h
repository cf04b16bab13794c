#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ctl/ctl_report.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/wire/database_report.h"

// How nacre-ctl has a pool get ready for a node that is stopped for a while.

namespace nacre::ctl {

struct MaintenanceRequest {
  std::string node;  ///< As FindNode takes it.
  std::chrono::seconds time{600};
  bool force = false;  ///< Also where something is amiss with the pool.
  bool wait = true;
  bool json = false;
};

/// "90s", "10min", "2h", up to a day. `InvalidArgument` for anything else.
Status ParseDuration(const std::string& text, std::chrono::seconds* duration);

/// Tells the pool that the node may be away, and, with `wait`, waits until it can be stopped, which
/// it then prints; until then it shows twice a second what stands against that. Interrupted, the
/// order stays. `Busy` where something is amiss and `force` is not given; `Unavailable` if the node
/// is gone too early, `Aborted` if the order ends meanwhile.
Status BeginMaintenance(pool::PoolClient* client, const MaintenanceRequest& request);
/// Ends it before its time, also that of a node that is away. `NotFound` if there is none.
Status EndMaintenance(pool::PoolClient* client, const std::string& node);

/// What the databases have to do before a node in maintenance can be stopped.
struct MaintenanceState {
  std::vector<std::string> obstacles;  ///< Sentences; none: it can be stopped.
  std::vector<std::string> keepers;    ///< Databases whose copies stay: no other nodes are there.
};
MaintenanceState LookAtMaintenance(const PoolReport& pool, const pool::Maintenance& order);

}  // namespace nacre::ctl
