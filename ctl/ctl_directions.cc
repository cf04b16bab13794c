#include "ctl/ctl_directions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "ctl/terminal/progress_line.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "util/uri.h"

namespace nacre::ctl {

Status ChangeDirections(pool::PoolClient* client,
                        const std::function<void(pool::Directions*)>& change) {
  constexpr int kAttempts = 10;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const PoolReport pool = AskPool(client);
    pool::Directions wanted = pool.directions;
    change(&wanted);
    ++wanted.version;
    int told = 0;
    bool overtaken = false;
    Status failure;
    for (size_t i = 0; i < pool.nodes.size(); ++i) {
      pool::Directions now;
      Status s = pool::SetDirections(client, static_cast<NodeId>(i), wanted, &now);
      if (s.ok()) {
        ++told;
        overtaken |= now != wanted;
      } else if (!s.IsUnavailable() || failure.ok()) {
        failure = std::move(s);
      }
    }
    if (told == 0) return failure;
    if (!failure.ok() && !failure.IsUnavailable()) return failure;
    // Another process has given directions of the same version, or later ones.
    if (!overtaken) return Status::OK();
  }
  return Status::Busy("another process keeps changing the pool's directions");
}

bool IsNamed(const pool::PoolClient& client, NodeId node, const std::string& name) {
  const std::string& address = client.node_address(node);
  if (address == name || address.substr(address.find(':') + 1) == name) return true;
  uint64_t position = 0;
  return ParseNumber(name, 0, static_cast<uint64_t>(client.node_count() - 1), &position).ok() &&
         position == node;
}

Status FindNode(pool::PoolClient* client, const std::string& name, NodeId* node,
                pool::NodeStats* stats) {
  for (int i = 0; i < client->node_count(); ++i) {
    const auto id = static_cast<NodeId>(i);
    if (!IsNamed(*client, id, name)) continue;
    *node = id;
    return pool::GetStats(client, id, stats);
  }
  return Status::InvalidArgument(fmt::format("the pool has no node '{}'", name));
}

Status SetDraining(pool::PoolClient* client, const pool::NodeStats& node, bool draining) {
  return ChangeDirections(client, [&](pool::Directions* directions) {
    std::erase(directions->draining, node.instance_id);
    if (draining) directions->draining.push_back(node.instance_id);
  });
}

Status AwaitDrained(pool::PoolClient* client, NodeId node, std::chrono::milliseconds period) {
  ProgressLine progress(stdout, client->clock(), "drain " + client->node_address(node),
                        ProgressLine::Plain::kChanges);
  uint64_t most = 0;  // What it has held meanwhile: an owner may lease more before it hears.
  for (;;) {
    const PoolReport pool = AskPool(client);
    const NodeReport& report = pool.nodes[node];
    NACRE_RETURN_IF_ERROR(report.status);
    if (report.stats.slabs_leased == 0) {
      progress.Clear();
      fmt::print("{}: holds nothing any more\n", report.address);
      return Status::OK();
    }
    if (!pool.draining(report)) return Status::Aborted(report.address + " is not to be drained");
    std::string obstacles;
    for (const pool::KnownDatabase& database : report.databases) {
      if (database.leased_bytes == 0 || database.open) continue;
      obstacles += fmt::format("; '{}' is closed, open it and its {} can leave", database.name,
                               FormatBytes(database.leased_bytes));
    }
    for (const pool::KnownDatabase& database : pool.databases) {
      if (database.report.repair.state == pool::RepairProgress::State::kIdle) continue;
      obstacles += fmt::format("; '{}' {}", database.name, RepairText(database.report.repair));
    }
    const uint64_t left = report.leased_bytes();
    most = std::max(most, left);
    const std::string detail = obstacles.empty() ? "" : obstacles.substr(2);
    progress.Show(most - left, most, detail,
                  fmt::format("{}: {} to go{}", report.address, FormatBytes(left), obstacles));
    client->clock()->SleepFor(period);
  }
}

}  // namespace nacre::ctl
