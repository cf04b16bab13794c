#include "ctl/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "ctl/ctl_report.h"
#include "ctl/upgrade_command.h"
#include "pool/connect/pool_device.h"
#include "pool/connect/pool_secret.h"
#include "pool/pool_client.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "util/json_text.h"

namespace nacre::ctl {
namespace {

using Verdict = rdma::Finding::Verdict;

constexpr int kPings = 100;

/// What to do about a node that does not answer as it should.
std::string NodeRemedyOf(const Status& status) {
  if (std::string remedy = pool::RemedyFor(status); !remedy.empty()) return remedy;
  if (status.IsTimedOut()) {
    return "something between here and there drops what is sent: look at firewalls and routes";
  }
  return "is nacre-memnode running there, with this address as its --listen, and may the port be "
         "reached ('nacre-perf serve' and 'nacre-perf read' try the transport alone)?";
}

/// Diagnoses each transport that leads to a node of the pool.
std::vector<rdma::Finding> DiagnoseAll(const Uri& pool,
                                       const std::map<std::string, std::string>& parameters) {
  if (pool.scheme != pool::kMixedScheme) {
    return rdma::Diagnose(pool.scheme, parameters, pool.addresses);
  }
  std::map<std::string, std::vector<std::string>> peers;  // Addresses by scheme.
  for (const std::string& address : pool.addresses) {
    const size_t colon = address.find(':');
    if (colon != std::string::npos)
      peers[address.substr(0, colon)].push_back(address.substr(colon + 1));
  }
  std::vector<rdma::Finding> all;
  for (const auto& [scheme, addresses] : peers) {
    std::map<std::string, std::string> own;
    for (const auto& [name, value] : parameters) {
      if (name.starts_with(scheme + ".")) own[name.substr(scheme.size() + 1)] = value;
    }
    for (rdma::Finding& finding : rdma::Diagnose(scheme, own, addresses)) {
      const auto same = [&](const rdma::Finding& other) {
        return other.subject == finding.subject;
      };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back(std::move(finding));
    }
  }
  return all;
}

/// One request after the other.
rdma::Finding Ping(pool::PoolClient* client, NodeId node, Clock* clock) {
  rdma::Finding finding{Verdict::kOk, client->node_address(node), "", ""};
  std::vector<uint64_t> nanos;
  for (int i = 0; i < kPings; ++i) {
    const uint64_t start = clock->NowNanos();
    if (const Status s = client->Ping(node); !s.ok()) {
      finding.verdict = Verdict::kFailure;
      finding.found = s.ToString();
      finding.remedy = NodeRemedyOf(s);
      return finding;
    }
    nanos.push_back(clock->NowNanos() - start);
  }
  std::sort(nanos.begin(), nanos.end());
  const auto micros = [&](size_t i) { return static_cast<double>(nanos[i]) / 1000; };
  pool::NodeStats stats;
  if (const Status s = pool::GetStats(client, node, &stats); !s.ok()) {
    return {Verdict::kFailure, finding.subject, s.ToString(), NodeRemedyOf(s)};
  }
  finding.found =
      fmt::format("answers in {:.1f} us (fastest {:.1f}, slowest {:.1f}), {} of {} slabs free",
                  micros(nanos.size() / 2), micros(0), micros(nanos.size() - 1),
                  stats.slabs_total - stats.slabs_leased, stats.slabs_total);
  return finding;
}

/// Nodes that an operator has said may be away for a while.
void AddMaintenance(pool::PoolClient* client, std::vector<rdma::Finding>* findings) {
  const PoolReport pool = AskPool(client);
  for (const NodeReport& node : pool.nodes) {
    const pool::Maintenance* const order = pool.maintenance(node);
    if (order == nullptr) continue;
    // That it does not answer is as it should be.
    std::erase_if(*findings, [&](const rdma::Finding& finding) {
      return !node.status.ok() && finding.subject == node.address;
    });
    findings->push_back(
        {Verdict::kWarning, node.address,
         fmt::format("is {} for maintenance, for {} more; what is on it is not repaired meanwhile",
                     node.status.ok() ? "about to be away" : "away", LeftText(order->left_nanos)),
         fmt::format("start it again with its memory, or 'nacre-ctl maintenance {} --end'",
                     node.address)});
  }
}

/// Nodes of several releases, and what is off because of them.
rdma::Finding Releases(pool::PoolClient* client) {
  const UpgradeState state = LookAtUpgrade(AskPool(client));
  rdma::Finding finding{Verdict::kOk, "release", fmt::format("{}", fmt::join(state.releases, ", ")),
                        ""};
  if (state.releases.size() > 1) {
    finding.verdict = Verdict::kWarning;
    finding.remedy = "upgrade the other nodes, too, or take the upgrade back";
  } else if (!state.older_clients.empty()) {
    finding.verdict = Verdict::kWarning;
    finding.found += fmt::format("; {}", fmt::join(state.older_clients, "; "));
    finding.remedy = "upgrade the applications, too";
  }
  if (state.off != 0) {
    finding.found +=
        fmt::format("; {} is off until 'nacre-ctl finalize-upgrade'", pool::ToString(state.off));
  }
  return finding;
}

/// All nodes of a pool have slabs of one size.
rdma::Finding SlabSizes(pool::PoolClient* client) {
  rdma::Finding finding{Verdict::kOk, "slab size", "", ""};
  uint64_t first = 0;
  for (int i = 0; i < client->node_count(); ++i) {
    pool::NodeStats stats;
    const auto node = static_cast<NodeId>(i);
    if (!pool::GetStats(client, node, &stats).ok()) continue;  // Told already.
    if (first == 0) {
      first = stats.slab_bytes;
      finding.found = FormatBytes(first);
    } else if (stats.slab_bytes != first) {
      finding.verdict = Verdict::kFailure;
      finding.found +=
          fmt::format(", but {} at {}", FormatBytes(stats.slab_bytes), client->node_address(node));
      finding.remedy = "start all nodes of a pool with the same --slab_size";
    }
  }
  return finding;
}

}  // namespace

std::vector<rdma::Finding> Examine(const Uri& pool, const rdma::DeviceOptions& options,
                                   std::chrono::milliseconds timeout, Clock* clock) {
  std::vector<rdma::Finding> findings = DiagnoseAll(pool, options.parameters);
  if (pool.addresses.empty()) return findings;
  std::unique_ptr<rdma::Device> device;
  if (const Status s = pool::OpenPoolDevice(pool, options, clock, &device); !s.ok()) {
    // What the diagnosis has found already explains it, as a rule.
    const bool explained =
        std::any_of(findings.begin(), findings.end(),
                    [](const rdma::Finding& f) { return f.verdict == Verdict::kFailure; });
    if (!explained) {
      findings.push_back({Verdict::kFailure, "transport", s.ToString(), "correct the pool's URI"});
    }
    return findings;
  }
  pool::PoolClientOptions client_options;
  client_options.operation_timeout = timeout;
  client_options.slab_bytes = 0;
  client_options.connect_all = false;
  std::unique_ptr<pool::PoolClient> client;
  if (const Status s =
          pool::PoolClient::Connect(pool, client_options, device.get(), clock, &client);
      !s.ok()) {
    findings.push_back({Verdict::kFailure, "pool", s.ToString(), "correct the pool's URI"});
    return findings;
  }
  bool reached = false;
  for (int i = 0; i < client->node_count(); ++i) {
    findings.push_back(Ping(client.get(), static_cast<NodeId>(i), clock));
    reached = reached || findings.back().verdict == Verdict::kOk;
  }
  if (reached) findings.push_back(SlabSizes(client.get()));
  if (reached) findings.push_back(Releases(client.get()));
  if (reached) AddMaintenance(client.get(), &findings);
  return findings;
}

const char* ToString(rdma::Finding::Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kFailure:
      return "failure";
  }
  return "?";
}

std::string FindingsJson(const std::vector<rdma::Finding>& findings) {
  std::string json;
  for (const rdma::Finding& finding : findings) {
    json += fmt::format("{}{{\"verdict\": \"{}\", \"subject\": {}, \"found\": {}, \"remedy\": {}}}",
                        json.empty() ? "" : ",\n  ", ToString(finding.verdict),
                        JsonString(finding.subject), JsonString(finding.found),
                        JsonString(finding.remedy));
  }
  return fmt::format("{{\"findings\": [\n  {}]}}\n", json);
}

}  // namespace nacre::ctl
