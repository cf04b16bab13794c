#include "ctl/upgrade_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ctl/ctl_directions.h"

namespace nacre::ctl {
namespace {

/// Each client once: most have connections to all nodes.
std::map<uint64_t, pool::ConnectedClient> ClientsOf(const PoolReport& pool) {
  std::map<uint64_t, pool::ConnectedClient> clients;
  for (const NodeReport& node : pool.nodes) {
    for (const pool::ConnectedClient& each : node.clients) {
      std::vector<std::string>& owned =
          clients.try_emplace(each.client_id, each).first->second.owned;
      for (const std::string& name : each.owned) {
        if (std::find(owned.begin(), owned.end(), name) == owned.end()) owned.push_back(name);
      }
    }
  }
  return clients;
}

std::string Lacks(const std::string& what, pool::FeatureSet missing) {
  return fmt::format("{} does not know {}", what, pool::ToString(missing));
}

}  // namespace

UpgradeState LookAtUpgrade(const PoolReport& pool, pool::FeatureSet known) {
  UpgradeState state;
  std::set<std::string> releases;
  state.on = pool.directions.features_on;
  state.off = known & ~state.on;
  for (const NodeReport& node : pool.nodes) {
    if (!node.status.ok()) {
      state.silent_nodes.push_back(node.address);
      continue;
    }
    const std::string release = NodeRelease(node);
    releases.insert(release);
    state.all_nodes_heard &= node.stats.features_on == state.on;
    const pool::FeatureSet missing = state.off & ~node.stats.protocol.features;
    if (missing != 0) {
      state.older_nodes.push_back(Lacks(fmt::format("{} ({})", node.address, release), missing));
    }
  }
  for (const auto& [client_id, client] : ClientsOf(pool)) {
    const pool::FeatureSet missing = state.off & ~client.protocol.features;
    if (missing == 0) continue;
    const std::string what =
        client.owned.empty()
            ? fmt::format("the client {:016x}, which has no database open for writing,", client_id)
            : fmt::format("the owner of '{}'", fmt::join(client.owned, "', '"));
    state.older_clients.push_back(Lacks(what, missing));
  }
  state.releases.assign(releases.begin(), releases.end());
  return state;
}

Status FinalizeUpgrade(pool::PoolClient* client, const FinalizeRequest& request) {
  const UpgradeState before = LookAtUpgrade(AskPool(client));
  std::vector<std::string> obstacles = before.older_nodes;
  obstacles.insert(obstacles.end(), before.older_clients.begin(), before.older_clients.end());
  if (!request.force) {
    for (const std::string& address : before.silent_nodes) {
      obstacles.push_back(address + " does not answer (--force does without it)");
    }
  }
  if (!obstacles.empty()) return Status::Busy(fmt::format("{}", fmt::join(obstacles, "; ")));
  const pool::FeatureSet wanted = before.on | before.off;
  if (before.off != 0 || !before.all_nodes_heard) {
    NACRE_RETURN_IF_ERROR(ChangeDirections(
        client, [&](pool::Directions* directions) { directions->features_on |= wanted; }));
  }
  if (request.json) {
    fmt::print("{{\"features_on\": {}, \"turned_on\": {}}}\n", FeaturesJson(wanted),
               FeaturesJson(before.off));
  } else if (before.off == 0) {
    fmt::print("on already: {}\n", pool::ToString(wanted));
  } else {
    fmt::print("turned on: {}; releases that do not know it are refused from now on\n",
               pool::ToString(before.off));
  }
  return Status::OK();
}

}  // namespace nacre::ctl
