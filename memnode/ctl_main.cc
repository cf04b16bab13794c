// nacre-ctl: looks at a pool from outside.

#include <fmt/format.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "memnode/doctor.h"
#include "memnode/pool_client.h"
#include "memnode/pool_device.h"
#include "memnode/pool_secret.h"
#include "util/log.h"
#include "util/uri.h"

DEFINE_string(pool, "",
              "the pool's nodes, such as shm:/run/n0.sock,/run/n1.sock; ?secret_file=PATH, or "
              "NACRE_SECRET_FILE or NACRE_SECRET in the environment, give the pool's secret");
DEFINE_bool(json, false, "print JSON");
DEFINE_int32(timeout_ms, 3000, "how long to wait for a node");

namespace nacre::memnode {
namespace {

constexpr std::string_view kUsage =
    "usage: nacre-ctl COMMAND --pool=URI [--json]\n"
    "  status   the pool as a whole\n"
    "  nodes    each of its nodes\n"
    "  doctor   what stands between this machine and the pool; --pool=verbs: looks at the machine "
    "only\n";
constexpr std::string_view kLaterCommands[] = {"fsck", "repair"};

struct NodeReport {
  std::string address;
  Status status;
  NodeStats stats;
};

std::string JsonString(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

Status ParsePool(Uri* pool, rdma::DeviceOptions* device_options) {
  if (FLAGS_pool.empty()) return Status::InvalidArgument("--pool is missing");
  if (FLAGS_timeout_ms <= 0) return Status::InvalidArgument("--timeout_ms must be positive");
  NACRE_RETURN_IF_ERROR(ParseUri(FLAGS_pool, pool).WithContext("--pool"));
  if (pool->scheme == "embedded") {
    return Status::InvalidArgument("--pool: an embedded pool is visible in its own process only");
  }
  MakePathsAbsolute(pool);
  device_options->logger = NewStderrLogger(LogLevel::kWarn);
  NACRE_RETURN_IF_ERROR(
      TakeSecret(pool, device_options->logger, &device_options->secret).WithContext("--pool"));
  device_options->parameters = pool->parameters;
  return Status::OK();
}

Status Ask(std::vector<NodeReport>* reports) {
  Uri pool;
  rdma::DeviceOptions device_options;
  NACRE_RETURN_IF_ERROR(ParsePool(&pool, &device_options));
  std::unique_ptr<rdma::Device> device;
  NACRE_RETURN_IF_ERROR(
      OpenPoolDevice(pool, device_options, Clock::System(), &device).WithContext("--pool"));
  PoolClientOptions options;
  options.operation_timeout = std::chrono::milliseconds(FLAGS_timeout_ms);
  options.slab_bytes = 0;
  options.connect_all = false;
  std::unique_ptr<PoolClient> client;
  NACRE_RETURN_IF_ERROR(PoolClient::Connect(pool, options, device.get(), Clock::System(), &client));
  for (int i = 0; i < client->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    NodeReport& report = reports->emplace_back();
    report.address = client->node_address(node);
    report.status = client->GetStats(node, &report.stats);
  }
  return Status::OK();
}

/// What went wrong, and what to do about it as far as that is known.
std::string Explain(const Status& status) {
  const std::string remedy = RemedyFor(status);
  return remedy.empty() ? status.ToString() : status.ToString() + "; " + remedy;
}

double Seconds(uint64_t nanos) { return static_cast<double>(nanos) / 1e9; }

std::string NodeJson(const NodeReport& node) {
  std::string json = fmt::format("{{\"address\": {}, \"reachable\": {}", JsonString(node.address),
                                 node.status.ok());
  if (!node.status.ok()) {
    return json + fmt::format(", \"error\": {}}}", JsonString(Explain(node.status)));
  }
  const NodeStats& s = node.stats;
  json += fmt::format(
      ", \"instance_id\": \"{:016x}\", \"region_bytes\": {}, \"slab_bytes\": {}, \"slabs\": {}, "
      "\"slabs_leased\": {}, \"databases\": {}, \"connections\": {}, \"requests\": {}, "
      "\"requests_malformed\": {}, \"peers_refused\": {}, \"frames_malformed\": {}, "
      "\"bytes_read\": {}, \"bytes_written\": {}, ",
      s.instance_id, s.region_bytes, s.slab_bytes, s.slabs_total, s.slabs_leased, s.databases,
      s.connections, s.requests, s.requests_malformed, s.peers_refused, s.frames_malformed,
      s.bytes_read, s.bytes_written);
  json += fmt::format(
      "\"compactions\": {}, \"compactions_failed\": {}, \"compaction_bytes_read\": {}, "
      "\"compaction_bytes_written\": {}, \"compaction_cpu_seconds\": {:.6f}, "
      "\"uptime_seconds\": {:.3f}}}",
      s.compactions, s.compactions_failed, s.compaction_bytes_read, s.compaction_bytes_written,
      Seconds(s.compaction_cpu_nanos), Seconds(s.uptime_nanos));
  return json;
}

void PrintNodes(const std::vector<NodeReport>& nodes) {
  if (FLAGS_json) {
    std::string json;
    for (const NodeReport& node : nodes) json += (json.empty() ? "" : ",\n  ") + NodeJson(node);
    fmt::print("{{\"nodes\": [\n  {}]}}\n", json);
    return;
  }
  size_t width = 7;
  for (const NodeReport& node : nodes) width = std::max(width, node.address.size());
  fmt::print("{:<{}} {:>10} {:>11} {:>4} {:>6} {:>10} {:>11} {:>9} {:>9}\n", "node", width, "slab",
             "leased", "dbs", "conns", "requests", "compactions", "cpu s", "uptime s");
  for (const NodeReport& node : nodes) {
    if (!node.status.ok()) {
      fmt::print("{:<{}} {}\n", node.address, width, Explain(node.status));
      continue;
    }
    const NodeStats& s = node.stats;
    fmt::print("{:<{}} {:>10} {:>11} {:>4} {:>6} {:>10} {:>11} {:>9.2f} {:>9.0f}\n", node.address,
               width, FormatBytes(s.slab_bytes),
               fmt::format("{}/{}", s.slabs_leased, s.slabs_total), s.databases, s.connections,
               s.requests, s.compactions, Seconds(s.compaction_cpu_nanos), Seconds(s.uptime_nanos));
  }
}

void PrintStatus(const std::vector<NodeReport>& nodes) {
  size_t reachable = 0;
  uint64_t total = 0;
  uint64_t leased = 0;
  uint64_t databases = 0;  // Each is known to every node that lived when it was opened.
  uint64_t compactions = 0;
  uint64_t refused = 0;
  uint64_t malformed = 0;
  for (const NodeReport& node : nodes) {
    if (!node.status.ok()) continue;
    ++reachable;
    total += node.stats.slabs_total * node.stats.slab_bytes;
    leased += node.stats.slabs_leased * node.stats.slab_bytes;
    databases = std::max(databases, node.stats.databases);
    compactions += node.stats.compactions;
    refused += node.stats.peers_refused;
    malformed += node.stats.frames_malformed + node.stats.requests_malformed;
  }
  if (FLAGS_json) {
    std::string lost;
    for (const NodeReport& node : nodes) {
      if (!node.status.ok()) lost += (lost.empty() ? "" : ", ") + JsonString(node.address);
    }
    fmt::print(
        "{{\"nodes\": {}, \"reachable\": {}, \"unreachable\": [{}], \"bytes\": {}, "
        "\"leased_bytes\": {}, \"databases\": {}, \"compactions\": {}, \"peers_refused\": {}, "
        "\"malformed\": {}}}\n",
        nodes.size(), reachable, lost, total, leased, databases, compactions, refused, malformed);
    return;
  }
  fmt::print("nodes        {} of {} reachable\n", reachable, nodes.size());
  fmt::print("memory       {} of {} leased\n", FormatBytes(leased), FormatBytes(total));
  fmt::print("databases    {}\n", databases);
  fmt::print("compactions  {}\n", compactions);
  fmt::print("refused      {} peers, {} malformed messages\n", refused, malformed);
  for (const NodeReport& node : nodes) {
    if (!node.status.ok()) fmt::print("unreachable  {}\n", Explain(node.status));
  }
}

Status RunDoctor(bool* healthy) {
  using Verdict = rdma::Finding::Verdict;
  Uri pool;
  rdma::DeviceOptions device_options;
  NACRE_RETURN_IF_ERROR(ParsePool(&pool, &device_options));
  const std::vector<rdma::Finding> findings =
      Examine(pool, device_options, std::chrono::milliseconds(FLAGS_timeout_ms), Clock::System());
  const auto name_of = [](Verdict verdict) {
    return verdict == Verdict::kOk ? "ok" : verdict == Verdict::kWarning ? "warning" : "failure";
  };
  *healthy = true;
  std::string json;
  for (const rdma::Finding& finding : findings) {
    if (finding.verdict == Verdict::kFailure) *healthy = false;
    if (FLAGS_json) {
      json += fmt::format(
          "{}{{\"verdict\": \"{}\", \"subject\": {}, \"found\": {}, \"remedy\": {}}}",
          json.empty() ? "" : ",\n  ", name_of(finding.verdict), JsonString(finding.subject),
          JsonString(finding.found), JsonString(finding.remedy));
      continue;
    }
    fmt::print("{:<8} {:<22} {}\n", name_of(finding.verdict), finding.subject, finding.found);
    if (!finding.remedy.empty()) fmt::print("{:<8} -> {}\n", "", finding.remedy);
  }
  if (FLAGS_json) fmt::print("{{\"findings\": [\n  {}]}}\n", json);
  return Status::OK();
}

int Run(std::string_view command) {
  const bool later = std::find(std::begin(kLaterCommands), std::end(kLaterCommands), command) !=
                     std::end(kLaterCommands);
  if (later) {
    fmt::print(stderr, "nacre-ctl: '{}' is not supported yet\n", command);
    return 1;
  }
  if (command == "doctor") {
    bool healthy = false;
    if (const Status s = RunDoctor(&healthy); !s.ok()) {
      fmt::print(stderr, "nacre-ctl: {}\n", s.ToString());
      return 1;
    }
    return healthy ? 0 : 1;
  }
  if (command != "status" && command != "nodes") {
    fmt::print(stderr, "nacre-ctl: unknown command '{}'\n{}", command, kUsage);
    return 1;
  }
  std::vector<NodeReport> nodes;
  if (const Status s = Ask(&nodes); !s.ok()) {
    fmt::print(stderr, "nacre-ctl: {}\n", s.ToString());
    return 1;
  }
  command == "nodes" ? PrintNodes(nodes) : PrintStatus(nodes);
  const bool all = std::all_of(nodes.begin(), nodes.end(),
                               [](const NodeReport& node) { return node.status.ok(); });
  return all ? 0 : 1;
}

}  // namespace
}  // namespace nacre::memnode

int main(int argc, char** argv) {
  gflags::SetUsageMessage(std::string(nacre::memnode::kUsage));
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  if (argc != 2) {
    fmt::print(stderr, "{}", nacre::memnode::kUsage);
    return 1;
  }
  return nacre::memnode::Run(argv[1]);
}
