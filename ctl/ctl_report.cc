#include "ctl/ctl_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <utility>

#include "pool/connect/pool_secret.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "util/json_text.h"
#include "util/threads/thread.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

/// Nodes that are asked at a time.
constexpr size_t kMaxAsked = 64;

double Seconds(uint64_t nanos) { return static_cast<double>(nanos) / 1e9; }

/// "12/85": microseconds within which half of the operations ended, and 99 of 100.
std::string TimesText(const std::vector<std::chrono::nanoseconds>& sorted) {
  if (sorted.empty()) return "-";
  const auto micros = [&](double share) { return (Within(sorted, share).count() + 999) / 1000; };
  return fmt::format("{}/{}", micros(0.5), micros(0.99));
}

std::string TimesJson(const std::vector<std::chrono::nanoseconds>& sorted) {
  const auto seconds = [&](double share) {
    return Seconds(static_cast<uint64_t>(Within(sorted, share).count()));
  };
  return fmt::format("{{\"p50\": {:.9f}, \"p99\": {:.9f}}}", seconds(0.5), seconds(0.99));
}

/// "process": it ends with the node's process; "kept": in a region file that the node made; "warm":
/// in one that it found.
const char* KeepingText(pool::Keeping keeping) {
  switch (keeping) {
    case pool::Keeping::kNone:
      return "process";
    case pool::Keeping::kEmpty:
      return "kept";
    case pool::Keeping::kWarm:
      return "warm";
  }
  return "?";
}

/// "9", "8-9".
std::string RangeText(const pool::ProtocolRange& range) {
  if (range.oldest == range.newest) return fmt::format("{}", range.newest);
  return fmt::format("{}-{}", range.oldest, range.newest);
}

/// Those of `items` that `text` gives something for, with ", " between them.
template <typename Items, typename Text>
std::string Join(const Items& items, const Text& text) {
  std::string joined;
  for (const auto& item : items) {
    const std::string part = text(item);
    if (part.empty()) continue;
    joined += (joined.empty() ? "" : ", ") + part;
  }
  return joined;
}

struct Totals {
  size_t reachable = 0;
  uint64_t bytes = 0;
  uint64_t leased_bytes = 0;
  uint64_t compactions = 0;
  uint64_t refused = 0;
  uint64_t malformed = 0;
};

Totals Sum(const PoolReport& pool) {
  Totals totals;
  for (const NodeReport& node : pool.nodes) {
    if (!node.status.ok()) continue;
    ++totals.reachable;
    totals.bytes += node.stats.slabs_total * node.stats.slab_bytes;
    totals.leased_bytes += node.leased_bytes();
    totals.compactions += node.stats.compactions;
    totals.refused += node.stats.peers_refused;
    totals.malformed += node.stats.frames_malformed + node.stats.requests_malformed;
  }
  return totals;
}

void PrintStatusJson(const PoolReport& pool) {
  const Totals totals = Sum(pool);
  const auto address_if = [](bool wanted, const NodeReport& node) {
    return wanted ? JsonString(node.address) : std::string();
  };
  fmt::print(
      "{{\"nodes\": {}, \"reachable\": {}, \"unreachable\": [{}], \"bytes\": {}, "
      "\"leased_bytes\": {}, \"databases\": {}, \"compactions\": {}, \"peers_refused\": {}, "
      "\"malformed\": {}, \"features_on\": {},\n \"draining\": [{}], \"repair_paused\": {}, "
      "\"repair_bytes_per_second\": {}, \"added\": [{}],\n \"maintenance\": [{}],\n "
      "\"database_list\": [{}]}}\n",
      pool.nodes.size(), totals.reachable,
      Join(pool.nodes, [&](const NodeReport& node) { return address_if(!node.status.ok(), node); }),
      totals.bytes, totals.leased_bytes, pool.databases.size(), totals.compactions, totals.refused,
      totals.malformed, FeaturesJson(pool.directions.features_on),
      Join(pool.nodes,
           [&](const NodeReport& node) { return address_if(pool.draining(node), node); }),
      pool.directions.repair_paused, pool.directions.repair_bytes_per_second,
      Join(pool.directions.added_addresses, JsonString),
      Join(pool.nodes,
           [&](const NodeReport& node) {
             const pool::Maintenance* const order = pool.maintenance(node);
             if (order == nullptr) return std::string();
             return fmt::format("{{\"address\": {}, \"reachable\": {}, \"left_seconds\": {:.3f}}}",
                                JsonString(node.address), node.status.ok(),
                                Seconds(order->left_nanos));
           }),
      Join(pool.databases,
           [](const pool::KnownDatabase& database) { return DatabaseJson(database); }));
}

void PrintDatabases(const std::vector<pool::KnownDatabase>& databases) {
  if (databases.empty()) return;
  size_t width = 8;
  for (const pool::KnownDatabase& database : databases)
    width = std::max(width, database.name.size());
  fmt::print("\n{:<{}} {:<7} {:<12} {:>10} {:>10} {:>10} {:>10}  {}\n", "database", width, "state",
             "redundancy", "user", "stored", "garbage", "leased", "repair");
  for (const pool::KnownDatabase& database : databases) {
    const std::string leased = FormatBytes(database.leased_bytes);
    if (!database.reported) {
      fmt::print("{:<{}} {:<7} {:<12} {:>10} {:>10} {:>10} {:>10}\n", database.name, width,
                 database.open ? "open" : "closed", "-", "-", "-", "-", leased);
      continue;
    }
    const auto figure = [&](std::string_view name) {
      return FormatBytes(SpaceFigure(database, name));
    };
    fmt::print("{:<{}} {:<7} {:<12} {:>10} {:>10} {:>10} {:>10}  {}\n", database.name, width,
               "open", database.report.redundancy, figure("user-bytes"), figure("stored-bytes"),
               figure("garbage-bytes"), leased, RepairText(database.report.repair));
    if (!database.report.notice.empty()) fmt::print("  {}\n", database.report.notice);
  }
}

/// A reader tells the nodes one after the other: the latest that one of them has heard holds.
void MergeReaders(const std::vector<pool::LogReader>& of_node,
                  std::vector<pool::LogReader>* readers) {
  for (const pool::LogReader& reader : of_node) {
    const auto known =
        std::find_if(readers->begin(), readers->end(),
                     [&](const pool::LogReader& each) { return each.reader == reader.reader; });
    if (known == readers->end()) {
      readers->push_back(reader);
      continue;
    }
    known->sequence = std::max(known->sequence, reader.sequence);
    known->restorable = std::max(known->restorable, reader.restorable);
    known->age_nanos = std::min(known->age_nanos, reader.age_nanos);
  }
}

/// A database's answers of all nodes as one.
void Merge(const pool::KnownDatabase& of_node,
           std::map<std::string, pool::KnownDatabase>* databases) {
  const auto [it, is_new] = databases->try_emplace(of_node.name, of_node);
  if (is_new) return;
  pool::KnownDatabase& merged = it->second;
  const uint64_t leased = merged.leased_bytes + of_node.leased_bytes;
  std::vector<pool::LogReader> readers = std::move(merged.log_readers);
  MergeReaders(of_node.log_readers, &readers);
  const bool fresher =
      of_node.reported && (!merged.reported || of_node.report_age_nanos < merged.report_age_nanos);
  if (fresher || (of_node.open && !merged.open)) merged = of_node;
  merged.leased_bytes = leased;
  merged.log_readers = std::move(readers);
}

}  // namespace

std::string NodeRelease(const NodeReport& node) {
  return node.stats.release.empty() ? "0.2.0 or before" : node.stats.release;
}

std::string FeaturesJson(pool::FeatureSet features) {
  return "[" + Join(pool::FeatureNames(features), JsonString) + "]";
}

const char* StateText(const NodeReport& node) {
  return !node.status.ok() ? "down" : node.slow ? "slow" : "well";
}

uint64_t SpaceFigure(const pool::KnownDatabase& database, std::string_view name) {
  for (const auto& [figure, bytes] : database.report.space) {
    if (figure == name) return bytes;
  }
  return 0;
}

std::string NodeJson(const PoolReport& pool, size_t number, const std::string& more) {
  const NodeReport& node = pool.nodes[number];
  std::string json =
      fmt::format("{{\"number\": {}, \"address\": {}, \"reachable\": {}, \"state\": \"{}\"", number,
                  JsonString(node.address), node.status.ok(), StateText(node));
  const bool maintenance = pool.maintenance(node) != nullptr;
  if (!node.status.ok()) {
    return json + fmt::format(", \"error\": {}, \"maintenance\": {}{}}}",
                              JsonString(Explain(node.status)), maintenance, more);
  }
  const pool::NodeStats& stats = node.stats;
  json += fmt::format(", \"instance_id\": \"{:016x}\"", stats.instance_id);
  if (!node.timing.empty()) {
    json += fmt::format(", \"read_seconds\": {}, \"ping_seconds\": {}",
                        TimesJson(node.timing.reads), TimesJson(node.timing.pings));
  }
  for (const pool::NodeFigure& figure : pool::NodeFigures()) {
    const uint64_t value = stats.*figure.value;
    json += figure.is_time() ? fmt::format(", \"{}\": {:.6f}", figure.json, Seconds(value))
                             : fmt::format(", \"{}\": {}", figure.json, value);
  }
  json += fmt::format(
      ", \"release\": {}, \"protocol_oldest\": {}, \"protocol_newest\": {}, \"features\": {}, "
      "\"features_on\": {}",
      JsonString(NodeRelease(node)), stats.protocol.range.oldest, stats.protocol.range.newest,
      FeaturesJson(stats.protocol.features), FeaturesJson(stats.features_on));
  return json +
         fmt::format(
             ", \"domain\": {}, \"memory\": \"{}\", \"draining\": {}, \"maintenance\": {}{}}}",
             JsonString(stats.domain), KeepingText(stats.keeping), pool.draining(node), maintenance,
             more);
}

namespace {

/// What took long, and how long operations take.
std::string OperationsJson(const pool::KnownDatabase& database) {
  const pool::DatabaseReport& report = database.report;
  std::string slow;
  for (const pool::SlowOperation& operation : report.latest_slow) {
    slow += fmt::format("{}{{\"age_seconds\": {:.3f}, \"text\": {}}}", slow.empty() ? "" : ", ",
                        Seconds(operation.age_nanos + database.report_age_nanos),
                        JsonString(operation.text));
  }
  std::string times;
  for (const pool::ReportedTimes& each : report.times) {
    times +=
        fmt::format("{}{}: {{\"count\": {}, \"median_micros\": {:.1f}, \"p99_micros\": {:.1f}}}",
                    times.empty() ? "" : ", ", JsonString(each.operation), each.count,
                    each.median_micros, each.p99_micros);
  }
  return fmt::format(
      ", \"slow_operations\": {{\"count\": {}, \"latest\": [{}]}}, \"times\": {{{}}}",
      report.slow_operations, slow, times);
}

}  // namespace

std::string DatabaseJson(const pool::KnownDatabase& database, const std::string& more) {
  std::string json = fmt::format(
      "{{\"name\": {}, \"id\": \"{:016x}\", \"open\": {}, \"leased_bytes\": {}",
      JsonString(database.name), database.database_id, database.open, database.leased_bytes);
  if (!database.reported) return json + more + "}";
  std::string space;
  for (const auto& [name, bytes] : database.report.space) {
    space += fmt::format("{}{}: {}", space.empty() ? "" : ", ", JsonString(name), bytes);
  }
  const pool::RepairProgress& repair = database.report.repair;
  return json + fmt::format(
                    ", \"redundancy\": {}, \"report_age_seconds\": {:.3f}, \"space\": {{{}}}, "
                    "\"repair\": {{\"state\": \"{}\", \"bytes_done\": {}, \"bytes_total\": {}, "
                    "\"bytes_per_second\": {}, \"seconds_left\": {}}}, \"notice\": {}{}{}}}",
                    JsonString(database.report.redundancy), Seconds(database.report_age_nanos),
                    space, ToString(repair.state), repair.bytes_done, repair.bytes_total,
                    repair.bytes_per_second, repair.seconds_left,
                    JsonString(database.report.notice), OperationsJson(database), more);
}

void AskNode(pool::PoolClient* client, NodeId node, NodeReport* report) {
  report->address = client->node_address(node);
  report->status = pool::GetStats(client, node, &report->stats);
  if (!report->status.ok()) return;
  report->start_id = client->start_id(node);
  // A node of an earlier version does not tell.
  Status told =
      pool::ListDatabases(client, node, &report->databases, &report->directions, &report->clients);
  if (!told.ok() && !told.IsNotSupported()) report->status = std::move(told);
}

std::string Counted(uint64_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string LeftText(uint64_t nanos) {
  const uint64_t seconds = (nanos + 999'999'999) / 1'000'000'000;
  if (seconds < 60) return fmt::format("{} s", seconds);
  return fmt::format("{} min {} s", seconds / 60, seconds % 60);
}

std::string Explain(const Status& status) {
  const std::string remedy = pool::RemedyFor(status);
  return remedy.empty() ? status.ToString() : status.ToString() + "; " + remedy;
}

bool PoolReport::complete() const {
  return std::all_of(nodes.begin(), nodes.end(),
                     [](const NodeReport& node) { return node.status.ok(); });
}

bool PoolReport::draining(const NodeReport& node) const {
  return node.status.ok() && std::find(directions.draining.begin(), directions.draining.end(),
                                       node.stats.instance_id) != directions.draining.end();
}

const pool::Maintenance* PoolReport::maintenance(const NodeReport& node) const {
  for (const pool::Maintenance& each : directions.maintenance) {
    if (each.left_nanos == 0) continue;
    const bool same = node.status.ok() ? each.instance_id == node.stats.instance_id &&
                                             each.start_id == node.start_id
                                       : each.address == node.address;
    if (same) return &each;
  }
  return nullptr;
}

PoolReport Summarize(std::vector<NodeReport> nodes) {
  PoolReport pool;
  pool.nodes = std::move(nodes);
  std::map<std::string, pool::KnownDatabase> databases;
  pool::FeatureSet features_on = 0;
  for (const NodeReport& report : pool.nodes) {
    if (!report.status.ok()) continue;
    features_on |= report.directions.features_on;
    for (const pool::KnownDatabase& database : report.databases) Merge(database, &databases);
    if (report.directions.version > pool.directions.version) pool.directions = report.directions;
  }
  pool.directions.features_on = features_on;
  for (auto& [name, database] : databases) pool.databases.push_back(std::move(database));
  return pool;
}

PoolReport AskPool(pool::PoolClient* client, bool timed) {
  std::vector<NodeReport> nodes(static_cast<size_t>(client->node_count()));
  std::atomic<size_t> next{0};
  RunTogether("nacre-ask", std::min(nodes.size(), kMaxAsked), [&](size_t) {
    for (size_t i = next.fetch_add(1); i < nodes.size(); i = next.fetch_add(1)) {
      const auto node = static_cast<NodeId>(i);
      if (timed) nodes[i].status = TimeNode(client, node, &nodes[i].timing);
      if (nodes[i].status.ok()) {
        AskNode(client, node, &nodes[i]);
      } else {
        nodes[i].address = client->node_address(node);
      }
    }
  });
  for (NodeReport& report : nodes) report.slow = IsSlow(client, report.timing);
  return Summarize(std::move(nodes));
}

std::string RepairText(const pool::RepairProgress& repair) {
  std::string text = ToString(repair.state);
  if (repair.state == pool::RepairProgress::State::kIdle) return text;
  const uint64_t percent =
      repair.bytes_total == 0 ? 0 : repair.bytes_done * 100 / repair.bytes_total;
  text += fmt::format(", {} % of {}", percent, FormatBytes(repair.bytes_total));
  if (repair.state != pool::RepairProgress::State::kRunning) return text;
  text += fmt::format(", {}/s", FormatBytes(repair.bytes_per_second));
  if (repair.seconds_left > 0) text += fmt::format(", {} s left", repair.seconds_left);
  return text;
}

void PrintNodes(const PoolReport& pool, bool json) {
  const std::vector<NodeReport>& nodes = pool.nodes;
  if (json) {
    std::string list;
    for (size_t i = 0; i < nodes.size(); ++i)
      list += (list.empty() ? "" : ",\n  ") + NodeJson(pool, i);
    fmt::print("{{\"nodes\": [\n  {}]}}\n", list);
    return;
  }
  size_t width = 7;
  size_t domain_width = 6;
  size_t release_width = 7;
  for (const NodeReport& node : nodes) {
    release_width = std::max(release_width, NodeRelease(node).size());
    width = std::max(width, node.address.size());
    domain_width = std::max(domain_width, node.stats.domain.size());
  }
  fmt::print(
      "{:>4} {:<{}} {:<5} {:>9} {:>9} {:>11} {:>11} {:>3} {:>5} {:>8} {:>7} {:>8}  {:<{}}  {:<7} "
      "{:>8}  {}\n",
      "node", "address", width, "state", "leased", "of", "read us", "ping us", "dbs", "conns",
      "jobs", "cpu s", "uptime s", "domain", domain_width, "memory", "protocol", "release");
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeReport& node = nodes[i];
    fmt::print("{:>4} {:<{}} {:<5} ", i, node.address, width, StateText(node));
    if (!node.status.ok()) {
      fmt::print("{}{}\n", Explain(node.status),
                 pool.maintenance(node) != nullptr ? "  maintenance" : "");
      continue;
    }
    const pool::NodeStats& s = node.stats;
    fmt::print(
        "{:>9} {:>9} {:>11} {:>11} {:>3} {:>5} {:>8} {:>7.1f} {:>8.0f}  {:<{}}  {:<7} {:>8}  "
        "{:<{}}{}{}\n",
        FormatBytes(node.leased_bytes()), FormatBytes(s.slabs_total * s.slab_bytes),
        TimesText(node.timing.reads), TimesText(node.timing.pings), s.databases, s.connections,
        s.compactions + s.flushes, Seconds(s.compaction_cpu_nanos + s.flush_cpu_nanos),
        Seconds(s.uptime_nanos), s.domain.empty() ? "-" : s.domain, domain_width,
        KeepingText(s.keeping), RangeText(s.protocol.range), NodeRelease(node), release_width,
        pool.draining(node) ? "  draining" : "",
        pool.maintenance(node) != nullptr ? "  maintenance" : "");
  }
}

void PrintStatus(const PoolReport& pool, bool json) {
  if (json) return PrintStatusJson(pool);
  const Totals totals = Sum(pool);
  fmt::print("nodes        {} of {} reachable\n", totals.reachable, pool.nodes.size());
  fmt::print("memory       {} of {} leased\n", FormatBytes(totals.leased_bytes),
             FormatBytes(totals.bytes));
  fmt::print("databases    {}\n", pool.databases.size());
  fmt::print("compactions  {}\n", totals.compactions);
  fmt::print("refused      {} peers, {} malformed messages\n", totals.refused, totals.malformed);
  for (const NodeReport& node : pool.nodes) {
    if (!node.status.ok()) fmt::print("unreachable  {}\n", Explain(node.status));
  }
  for (const NodeReport& node : pool.nodes) {
    if (!pool.draining(node)) continue;
    fmt::print("draining     {}: {} leased\n", node.address, FormatBytes(node.leased_bytes()));
  }
  for (const NodeReport& node : pool.nodes) {
    const pool::Maintenance* const order = pool.maintenance(node);
    if (order == nullptr) continue;
    fmt::print("maintenance  {}: {}, {} left\n", node.address, node.status.ok() ? "there" : "away",
               LeftText(order->left_nanos));
  }
  if (pool.directions.repair_paused) fmt::print("repair       paused\n");
  if (pool.directions.repair_bytes_per_second > 0) {
    fmt::print("repair       limited to {}/s\n",
               FormatBytes(pool.directions.repair_bytes_per_second));
  }
  for (const std::string& address : pool.directions.added_addresses) {
    fmt::print("added        {}\n", address);
  }
  if (pool.directions.features_on != 0) {
    fmt::print("features     {}\n", pool::ToString(pool.directions.features_on));
  }
  PrintDatabases(pool.databases);
}

}  // namespace nacre::ctl
