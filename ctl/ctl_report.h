#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/node_timing.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/wire/database_report.h"
#include "pool/wire/node_stats.h"

// What nacre-ctl shows of a pool.

namespace nacre::ctl {

/// What one node answered.
struct NodeReport {
  std::string address;
  Status status;
  pool::NodeStats stats;
  uint32_t start_id = 0;  ///< See pool::PoolClient; 0 as long as the node was not reached.
  std::vector<pool::KnownDatabase> databases;
  std::vector<pool::ConnectedClient> clients;
  pool::Directions directions;
  NodeTiming timing;  ///< Empty unless it was asked for.
  bool slow = false;  ///< According to it.

  uint64_t leased_bytes() const { return stats.slabs_leased * stats.slab_bytes; }
};

/// All nodes' answers, and what follows from them.
struct PoolReport {
  std::vector<NodeReport> nodes;
  /// Each database once, by name: its freshest report, and the bytes leased on all nodes.
  std::vector<pool::KnownDatabase> databases;
  /// The latest, with the features that any node has heard to be on.
  pool::Directions directions;

  bool complete() const;
  bool draining(const NodeReport& node) const;
  /// The order by which the node may be away for a while; null: there is none that holds. A node
  /// that does not answer is known by its address.
  const pool::Maintenance* maintenance(const NodeReport& node) const;
};

/// Asks one node how it is, and what it knows of databases. It has failed or it has not: see
/// `report->status`.
void AskNode(pool::PoolClient* client, NodeId node, NodeReport* report);
/// What follows from all nodes' answers.
PoolReport Summarize(std::vector<NodeReport> nodes);
/// Asks all nodes at once, so that silent ones are waited for together. `timed`: measures how long
/// small operations take, too, and asks nothing else of nodes that do not answer these.
PoolReport AskPool(pool::PoolClient* client, bool timed = false);

/// Prints "pool" to standard output: a line for each figure, then a table of databases; or JSON.
void PrintStatus(const PoolReport& pool, bool json);
/// A line for each node of a report with times; or JSON.
void PrintNodes(const PoolReport& pool, bool json);

/// The release of a node that answers: "0.2.0 (commit 1a2b3c4d5e, release)"; those of protocol
/// version 8 do not tell, and are "0.2.0 or before".
std::string NodeRelease(const NodeReport& node);
/// ["root-features"].
std::string FeaturesJson(pool::FeatureSet features);
/// "well", "slow" or "down": it does not answer.
const char* StateText(const NodeReport& node);
/// The figure of that name ("user-bytes") of what an owner has reported; 0 without.
uint64_t SpaceFigure(const pool::KnownDatabase& database, std::string_view name);
/// The node of that number as an object of JSON, and the same for a database. `more`: further
/// members (", \"a\": 1").
std::string NodeJson(const PoolReport& pool, size_t number, const std::string& more = "");
std::string DatabaseJson(const pool::KnownDatabase& database, const std::string& more = "");

/// "idle", "running, 12 % of 1.5 GiB, 100 MiB/s, 14 s left".
std::string RepairText(const pool::RepairProgress& repair);
/// "9 min 5 s", "5 s".
std::string LeftText(uint64_t nanos);
/// "1 table", "2 tables".
std::string Counted(uint64_t count, const std::string& what);
/// What went wrong, and what to do about it as far as that is known.
std::string Explain(const Status& status);

}  // namespace nacre::ctl
