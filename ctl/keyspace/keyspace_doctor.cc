#include "ctl/keyspace/keyspace_doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "ctl/ctl_report.h"
#include "ctl/keyspace/keyspace_report.h"
#include "sharding/members/coordinator.h"
#include "sharding/members/keyspace_admin.h"

namespace nacre::ctl {
namespace {

using std::chrono::milliseconds;
using Verdict = rdma::Finding::Verdict;

/// "etcd:a:1,b:1" as "etcd:a:1" and "etcd:b:1".
std::vector<std::string> EndpointsOf(const std::string& coordinator) {
  const size_t colon = coordinator.find(':');
  if (colon == std::string::npos) return {coordinator};
  const std::string scheme = coordinator.substr(0, colon + 1);
  std::vector<std::string> endpoints;
  for (size_t begin = colon + 1; begin <= coordinator.size();) {
    const size_t end = std::min(coordinator.find(',', begin), coordinator.size());
    endpoints.push_back(scheme + coordinator.substr(begin, end - begin));
    begin = end + 1;
  }
  return endpoints;
}

std::string CoordinatorRemedyOf(const Status& status) {
  if (status.IsNotSupported()) return "use a nacre-ctl that was built with -DNACRE_BUILD_ETCD=ON";
  if (status.IsInvalidArgument()) return "correct --coordinator";
  return "is etcd running there, may the port be reached from here, and do more than half of its "
         "cluster's members run ('etcdctl endpoint status --cluster')?";
}

/// Reads what there is, once to connect and once to see how long it takes.
rdma::Finding AskEndpoint(const std::string& endpoint, milliseconds timeout, Clock* clock,
                          std::vector<std::string>* keyspaces) {
  std::shared_ptr<Coordinator> coordinator;
  Status status = OpenCoordinator(endpoint, &coordinator);
  uint64_t begun = 0;
  for (int i = 0; i < 2 && status.ok(); ++i) {
    begun = clock->NowNanos();
    status = KeyspaceAdmin::List(coordinator.get(), Deadline::After(clock, timeout), keyspaces);
  }
  if (!status.ok())
    return {Verdict::kFailure, endpoint, status.ToString(), CoordinatorRemedyOf(status)};
  const double micros = static_cast<double>(clock->NowNanos() - begun) / 1000;
  return {Verdict::kOk, endpoint,
          fmt::format("answers in {:.1f} us, has a leader, knows {}", micros,
                      Counted(keyspaces->size(), "keyspace")),
          ""};
}

/// What is found of one keyspace.
class KeyspacePatient {
 public:
  KeyspacePatient(const std::string& name, const KeyspaceReport& report,
                  std::vector<rdma::Finding>* findings)
      : subject_("keyspace " + name), report_(report), findings_(findings) {}

  void Examine() {
    if (report_.state.members.empty()) {
      return Add(Verdict::kWarning, "no process has it open",
                 "start those that serve it, by ShardedOptions::coordinator and member_address");
    }
    ExamineLeader();
    ExamineMembers();
    if (!report_.map_status.ok()) return ExamineMap();
    ExamineShards(
        {ShardState::kOrphan}, Verdict::kFailure, "without an owner that lives",
        "the member that leads gives them away within seconds; else its log says why it does not");
    ExamineShards({ShardState::kOpening, ShardState::kMoving}, Verdict::kWarning,
                  "not served by their owners yet",
                  "ask again in a few seconds; if it stays so, the log of the owner says why it "
                  "cannot open them ('nacre-ctl shards' names it)");
    if (report_.all_served()) {
      Add(Verdict::kOk,
          fmt::format("all of its {} shards are served{}", report_.shards.size(),
                      report_.map.balance().paused ? "; moves are paused" : ""),
          "");
    }
  }

 private:
  void Add(Verdict verdict, std::string found, std::string remedy) {
    findings_->push_back({verdict, subject_, std::move(found), std::move(remedy)});
  }

  void ExamineLeader() {
    const KeyspaceState& state = report_.state;
    if (report_.answers.empty()) {
      return Add(Verdict::kFailure, "none of its members serves shards, or can lead it",
                 "give processes a member_address");
    }
    if (state.Find(state.leader) == nullptr) {
      return Add(Verdict::kFailure, "no member leads it",
                 "one does within a second or so of the end of the one before; else the members' "
                 "logs say whether they reach the coordinator");
    }
    Add(Verdict::kOk,
        fmt::format("{} leads {}", NameOf(state, state.leader),
                    Counted(state.members.size(), "member")),
        "");
  }

  void ExamineMembers() {
    for (const auto& [member, answer] : report_.answers) {
      if (answer.status.ok()) continue;
      Add(Verdict::kFailure,
          fmt::format("{}: {}", NameOf(report_.state, member), answer.status.ToString()),
          "does its process hang, and may its member_address be reached from here?");
    }
  }

  void ExamineMap() {
    const bool missing = report_.map_status.IsNotFound();
    Add(report_.map_status.IsCorruption() ? Verdict::kFailure : Verdict::kWarning,
        report_.map_status.ToString(),
        missing ? "the member that leads makes it; if it stays so, its log says why it cannot"
                : "ask a member that has it open (ShardedDB::GetShards)");
  }

  void ExamineShards(const std::vector<ShardState>& states, Verdict verdict,
                     const std::string& what, const std::string& remedy) {
    std::string list;
    for (const ShardReport& shard : report_.shards) {
      if (std::ranges::find(states, shard.state) == states.end()) continue;
      list += fmt::format("{}{}", list.empty() ? "" : ", ", shard.shard.id);
      if (verdict == Verdict::kFailure && shard.shard.owner != 0) {
        list += fmt::format(" (member {} is none any more)", shard.shard.owner);
      }
    }
    if (!list.empty()) Add(verdict, fmt::format("shards {}: {}", what, list), remedy);
  }

  const std::string subject_;
  const KeyspaceReport& report_;
  std::vector<rdma::Finding>* const findings_;
};

}  // namespace

std::vector<rdma::Finding> ExamineCoordinator(const std::string& coordinator,
                                              const pool::PeerSecurity& security,
                                              milliseconds timeout, Clock* clock) {
  std::vector<rdma::Finding> findings;
  std::vector<std::string> keyspaces;
  for (const std::string& endpoint : EndpointsOf(coordinator)) {
    std::vector<std::string> known;
    findings.push_back(AskEndpoint(endpoint, timeout, clock, &known));
    if (findings.back().verdict == Verdict::kOk) keyspaces = std::move(known);
  }
  for (const std::string& name : keyspaces) {
    std::unique_ptr<KeyspaceAdmin> admin;
    KeyspaceReport report;
    Status status = KeyspaceAdmin::Open(coordinator, name, security, timeout, clock, &admin);
    if (status.ok()) status = AskKeyspace(admin.get(), &report);
    if (status.IsNotFound()) continue;  // It has ended since.
    if (!status.ok()) {
      findings.push_back(
          {Verdict::kFailure, "keyspace " + name, status.ToString(), CoordinatorRemedyOf(status)});
      continue;
    }
    KeyspacePatient(name, report, &findings).Examine();
  }
  return findings;
}

}  // namespace nacre::ctl
