#include "ctl/top/top_json.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>

namespace nacre::ctl {
namespace {

std::string RatesJson(const std::optional<NodeRates>& rates) {
  if (!rates.has_value()) return "null";
  return fmt::format(
      "{{\"seconds\": {:.3f}, \"bytes_read\": {:.0f}, \"bytes_written\": {:.0f}, "
      "\"requests\": {:.1f}, \"jobs\": {:.2f}, \"job_cores\": {:.3f}, \"rebuilt_bytes\": {:.0f}}}",
      rates->seconds, rates->bytes_read, rates->bytes_written, rates->requests, rates->jobs,
      rates->job_cores, rates->rebuilt);
}

}  // namespace

std::string TopNodeJson(const PoolSample& sample, size_t number, const std::string& more) {
  const NodeReport& node = sample.pool.nodes[number];
  if (!node.status.ok()) return NodeJson(sample.pool, number, more);
  std::string own = ", \"per_second\": " + RatesJson(sample.rates[number]);
  if (!node.timing.pings.empty()) {
    own += fmt::format(", \"answer_seconds\": {:.9f}",
                       static_cast<double>(node.timing.pings.back().count()) / 1e9);
  }
  return NodeJson(sample.pool, number, own + more);
}

std::string TopDatabaseJson(const pool::KnownDatabase& database) {
  std::string readers;
  for (const pool::LogReader& reader : database.log_readers) {
    readers += fmt::format(
        "{}{{\"reader\": \"{:016x}\", \"sequence\": {}, \"restorable\": {}, "
        "\"age_seconds\": {:.3f}}}",
        readers.empty() ? "" : ", ", reader.reader, reader.sequence, reader.restorable,
        static_cast<double>(reader.age_nanos) / 1e9);
  }
  return DatabaseJson(database, ", \"log_readers\": [" + readers + "]");
}

std::string TopJson(const PoolSample& sample) {
  std::string nodes;
  for (size_t i = 0; i < sample.pool.nodes.size(); ++i) {
    nodes += (nodes.empty() ? "" : ",\n  ") + TopNodeJson(sample, i);
  }
  std::string databases;
  for (const pool::KnownDatabase& database : sample.pool.databases) {
    databases += (databases.empty() ? "" : ",\n  ") + TopDatabaseJson(database);
  }
  return fmt::format("{{\"nodes\": [\n  {}],\n \"databases\": [\n  {}]}}\n", nodes, databases);
}

}  // namespace nacre::ctl
