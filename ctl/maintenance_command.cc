#include "ctl/maintenance_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "ctl/ctl_directions.h"
#include "pool/wire/node_stats.h"
#include "util/clock.h"
#include "util/json_text.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

using std::chrono::seconds;

constexpr std::chrono::milliseconds kMaintenancePeriod{500};
constexpr uint64_t kMaxSeconds = 24 * 3600;

/// `Busy` if the pool can spare less than it should when the node is away.
Status CheckPoolIsWhole(const PoolReport& pool, NodeId node) {
  std::vector<std::string> amiss;
  for (size_t i = 0; i < pool.nodes.size(); ++i) {
    const NodeReport& other = pool.nodes[i];
    if (i == node) continue;
    if (!other.status.ok()) {
      amiss.push_back(other.address + " does not answer");
    } else if (pool.maintenance(other) != nullptr) {
      amiss.push_back(other.address + " is in maintenance");
    }
  }
  for (const pool::KnownDatabase& database : pool.databases) {
    if (database.report.repair.state == pool::RepairProgress::State::kIdle) continue;
    amiss.push_back(
        fmt::format("repair of '{}' is {}", database.name, RepairText(database.report.repair)));
  }
  if (amiss.empty()) return Status::OK();
  return Status::Busy(
      fmt::format("{}; wait until that is over, or use --force", fmt::join(amiss, "; ")));
}

void PrintReady(const NodeReport& node, const pool::Maintenance& order,
                const MaintenanceState& state, bool json) {
  const bool keeps = node.stats.keeping != pool::Keeping::kNone;
  if (json) {
    std::string keepers;
    for (const std::string& name : state.keepers) {
      keepers += (keepers.empty() ? "" : ", ") + JsonString(name);
    }
    fmt::print(
        "{{\"address\": {}, \"ready\": {}, \"left_seconds\": {}, \"keeps_memory\": {}, "
        "\"kept_by\": [{}]}}\n",
        JsonString(node.address), state.obstacles.empty(), order.left_nanos / 1'000'000'000, keeps,
        keepers);
    return;
  }
  fmt::print("{}: can be stopped; what is on it is not repaired for {}\n", node.address,
             LeftText(order.left_nanos));
  for (const std::string& name : state.keepers) {
    fmt::print(
        "  '{}' keeps copies of its log or manifest there, as too few other nodes can take "
        "them: it loses that redundancy while the node is away\n",
        name);
  }
  if (!keeps) {
    fmt::print(
        "  its memory ends with its process: if that is stopped, and not just its network, "
        "what is on it is repaired as soon as it is started anew; to lose nothing, "
        "'nacre-ctl drain' it\n");
  }
}

/// The order as it is now; `Aborted` if there is none any more.
Status FindOrder(const PoolReport& pool, const NodeReport& node, pool::Maintenance* order) {
  NACRE_RETURN_IF_ERROR(node.status);
  const pool::Maintenance* const found = pool.maintenance(node);
  if (found == nullptr) return Status::Aborted(node.address + " is not in maintenance any more");
  *order = *found;
  return Status::OK();
}

}  // namespace

Status ParseDuration(const std::string& text, seconds* duration) {
  static constexpr std::pair<const char*, uint64_t> kUnits[] = {{"s", 1}, {"min", 60}, {"h", 3600}};
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  for (const auto& [unit, factor] : kUnits) {
    if (text.substr(digits) != unit) continue;
    uint64_t count = 0;
    if (!ParseNumber(text.substr(0, digits), 1, kMaxSeconds / factor, &count).ok()) break;
    *duration = seconds(static_cast<int64_t>(count * factor));
    return Status::OK();
  }
  return Status::InvalidArgument(
      fmt::format("'{}' is no time of 1s to 24h, such as 90s, 10min or 2h", text));
}

MaintenanceState LookAtMaintenance(const PoolReport& pool, const pool::Maintenance& order) {
  using State = pool::LeavingNode::State;
  MaintenanceState state;
  for (const pool::KnownDatabase& database : pool.databases) {
    if (!database.open) continue;
    const auto& leaving = database.report.leaving;
    const auto node = std::find_if(
        leaving.begin(), leaving.end(),
        [&](const pool::LeavingNode& each) { return each.instance_id == order.instance_id; });
    if (!database.reported || node == leaving.end()) {
      state.obstacles.push_back(
          fmt::format("the owner of '{}' has not heard of it", database.name));
    } else if (node->state == State::kLeaving) {
      state.obstacles.push_back(
          fmt::format("'{}' has copies of its log or manifest there", database.name));
    } else if (node->state == State::kKept) {
      state.keepers.push_back(database.name);
    }
  }
  return state;
}

Status BeginMaintenance(pool::PoolClient* client, const MaintenanceRequest& request) {
  NodeId node = kNoNode;
  pool::NodeStats stats;
  NACRE_RETURN_IF_ERROR(FindNode(client, request.node, &node, &stats));
  if (!request.force) NACRE_RETURN_IF_ERROR(CheckPoolIsWhole(AskPool(client), node));
  const pool::Maintenance wanted{.instance_id = stats.instance_id,
                                 .start_id = client->start_id(node),
                                 .address = client->node_address(node),
                                 .left_nanos = Nanos(request.time)};
  NACRE_RETURN_IF_ERROR(ChangeDirections(client, [&](pool::Directions* directions) {
    std::erase_if(directions->maintenance, [&](const pool::Maintenance& each) {
      return each.left_nanos == 0 || each.address == wanted.address ||
             each.instance_id == wanted.instance_id;
    });
    directions->maintenance.push_back(wanted);
  }));
  if (!request.wait) return Status::OK();
  std::string shown;
  for (;; client->clock()->SleepFor(kMaintenancePeriod)) {
    const PoolReport pool = AskPool(client);
    pool::Maintenance order;
    NACRE_RETURN_IF_ERROR(FindOrder(pool, pool.nodes[node], &order));
    const MaintenanceState state = LookAtMaintenance(pool, order);
    if (state.obstacles.empty()) {
      PrintReady(pool.nodes[node], order, state, request.json);
      return Status::OK();
    }
    const std::string obstacles = fmt::format("{}", fmt::join(state.obstacles, "; "));
    if (obstacles != shown && !request.json) {
      fmt::print("{}: cannot be stopped yet: {}\n", pool.nodes[node].address, obstacles);
      std::fflush(stdout);
    }
    shown = obstacles;
  }
}

Status EndMaintenance(pool::PoolClient* client, const std::string& name) {
  const PoolReport pool = AskPool(client);
  const auto is_named = [&](const pool::Maintenance& order) {
    for (size_t i = 0; i < pool.nodes.size(); ++i) {
      const NodeReport& node = pool.nodes[i];
      const bool same = node.status.ok() ? node.stats.instance_id == order.instance_id
                                         : node.address == order.address;
      if (same && IsNamed(*client, static_cast<NodeId>(i), name)) return true;
    }
    return order.address == name;
  };
  if (std::none_of(pool.directions.maintenance.begin(), pool.directions.maintenance.end(),
                   is_named)) {
    return Status::NotFound(fmt::format("no node '{}' is in maintenance", name));
  }
  return ChangeDirections(client, [&](pool::Directions* directions) {
    std::erase_if(directions->maintenance, is_named);
  });
}

}  // namespace nacre::ctl
