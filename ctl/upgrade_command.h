#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ctl/ctl_report.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/wire/versions.h"

// How nacre-ctl sees to it that a pool uses what its release knows, once no older one is left in it
// (docs/operations.md, "6.8 Upgrade without a stop").

namespace nacre::ctl {

struct FinalizeRequest {
  bool force = false;  ///< Also where a node does not answer.
  bool json = false;
};

/// Turns all features on that this release knows, for good, and prints those that are on then.
/// `Busy`, naming them, where nodes or clients do not know them all, or a node does not answer and
/// `force` is not given. After `Unavailable` some nodes may have heard of it, and tell the others.
Status FinalizeUpgrade(pool::PoolClient* client, const FinalizeRequest& request);

/// The releases in a pool, and what stands against turning features on.
struct UpgradeState {
  pool::FeatureSet on = 0;                 ///< As far as any node has heard.
  pool::FeatureSet off = 0;                ///< Those beside them that this release knows.
  bool all_nodes_heard = true;             ///< All that answer have heard of all that is on.
  std::vector<std::string> releases;       ///< What the nodes that answer are, each once, sorted.
  std::vector<std::string> silent_nodes;   ///< Addresses.
  std::vector<std::string> older_nodes;    ///< Sentences about those that lack something of `off`.
  std::vector<std::string> older_clients;  ///< Likewise.
};
UpgradeState LookAtUpgrade(const PoolReport& pool, pool::FeatureSet known = pool::kKnownFeatures);

}  // namespace nacre::ctl
