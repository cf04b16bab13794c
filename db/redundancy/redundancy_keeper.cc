#include "db/redundancy/redundancy_keeper.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/context/slow_operations.h"
#include "db/redundancy/repair_planner.h"
#include "db/version/space_report.h"
#include "nacre/statistics.h"
#include "pool/databases.h"
#include "pool/node_pace_report.h"
#include "pool/reports.h"
#include "pool/wire/database_report.h"
#include "util/log.h"

namespace nacre {

RedundancyKeeper::RedundancyKeeper(Database database)
    : database_(std::move(database)),
      context_(*database_.context),
      scrubber_({.name = context_.name,
                 .id = context_.database_id,
                 .client = context_.client,
                 .clock = context_.clock,
                 .log = context_.options.info_log.get(),
                 .versions = [this] { return database_.state->Versions(); }}),
      metadata_scrubber_({.name = context_.name,
                          .id = context_.database_id,
                          .client = context_.client,
                          .clock = context_.clock,
                          .logger = context_.options.info_log.get(),
                          .manifest = database_.committer->manifest(),
                          .log = database_.log,
                          .flush_log = database_.flush_log,
                          .release_log = [this] { ReleaseLog(); }}),
      reporter_(context_.client, {.make_report = [this] { return MakeReport(); },
                                  .directions_changed = [this] { keeper_.Wake(); },
                                  .heard_of_readers =
                                      [this](const std::vector<pool::LogReader>& readers) {
                                        context_.log_readers.Heard(readers);
                                        context_.log_readers.HeardAll();
                                        database_.committer->ReleaseKeptLog();
                                      }}),
      keeper_({.clock = context_.clock,
               .where = context_.client->PeriodicOn(&pool::Background::looks),
               .look = [this] { return LookAtNodes(); },
               .changed = [this](const NodeStates& before,
                                 const NodeStates& now) { NodesChanged(before, now); },
               .follow = [this] { KeepUpWithNodes(); },
               .leave_nodes = [this] { LeaveLogSegments(); }}),
      repairer_(database_.context, database_.state, database_.committer, &keeper_, &reporter_,
                [this] { return LookAtNodes(); }) {}

void RedundancyKeeper::Start() {
  context_.client->databases()->SetNeedsLostNodes(context_.database_id, [this] {
    return NeedsLostNodes(database_.state->Versions(), LookAtNodes());
  });
  reporter_.Start();
  keeper_.Start();
  repairer_.Start();
  scrubber_.Start(context_.options.scrub_bytes_per_second);
  metadata_scrubber_.Start(context_.options.scrub_bytes_per_second);
}

void RedundancyKeeper::Stop() {
  keeper_.Stop();
  repairer_.Stop();
  reporter_.Stop();
  scrubber_.Stop();
  metadata_scrubber_.Stop();
}

Status RedundancyKeeper::VerifyChecksum() {
  const Status tables = scrubber_.VerifyNow();
  const Status metadata = metadata_scrubber_.VerifyNow();
  return tables.ok() ? metadata : tables;
}

NodeStates RedundancyKeeper::LookAtNodes() const {
  NodeStates nodes;
  for (int i = 0; i < context_.client->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    nodes.alive.push_back(context_.client->alive(node));
    nodes.draining.push_back(reporter_.draining(node));
    nodes.maintenance.push_back(reporter_.maintenance().Holds(node));
    nodes.returned.push_back(reporter_.maintenance().Returned(node));
  }
  return nodes;
}

void RedundancyKeeper::NodesChanged(const NodeStates& before, const NodeStates& now) {
  context_.events.NodesChanged(before, now, *context_.client);
  TellOfMaintenance(before, now);
  pool::KeepClearOf(reporter_.maintenance(), context_.client);
  std::vector<NodeId> leave;
  for (size_t i = 0; i < now.draining.size(); ++i) {
    if (now.draining[i] || now.maintenance[i]) leave.push_back(static_cast<NodeId>(i));
  }
  context_.space.SetDraining(std::move(leave));
}

void RedundancyKeeper::TellOfMaintenance(const NodeStates& before, const NodeStates& now) const {
  for (size_t i = 0; i < now.maintenance.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (now.maintenance[i] == before.InMaintenance(node)) continue;
    const std::string& address = context_.client->node_address(node);
    const char* what = "may be away for maintenance; what is on it is not repaired meanwhile";
    if (!now.maintenance[i]) {
      what = now.alive[i] ? "is out of maintenance, and used again"
                          : "has not come back from maintenance with its memory in time; what was "
                            "on it is repaired from here on";
    }
    Log(context_.options.info_log,
        now.alive[i] || now.maintenance[i] ? LogLevel::kInfo : LogLevel::kWarn, "{}: node {} {}",
        context_.name, address, what);
  }
}

void RedundancyKeeper::KeepUpWithNodes() {
  for (const std::string& address : reporter_.directions().added_addresses) {
    context_.client->AddNode(address);
  }
  Status refusal = context_.client->JoinRefusal();
  if (!refusal.ok() && join_refusal_.ok()) {
    Log(context_.options.info_log, LogLevel::kError, "{}: a node cannot join: {}", context_.name,
        refusal.ToString());
  }
  join_refusal_ = std::move(refusal);
  LookAtPace();
  database_.committer->FollowNodes([this](NodeId node) { return MustLeave(node); });
  if (database_.log != nullptr && database_.log->HasManyUnused()) ReleaseLog();
  database_.settle_writes();
  if (context_.events.listens() && context_.client->databases()->Fenced(context_.database_id)) {
    context_.events.Fenced(Status::Fenced("another owner has taken the database over"));
  }
}

void RedundancyKeeper::LookAtPace() {
  const uint64_t changes = context_.client->pace_changes();
  if (changes == pace_changes_) return;
  pace_changes_ = changes;
  const std::vector<pool::NodePaceReport> nodes = pool::ReportPace(*context_.client);
  using State = pool::NodePaceReport::State;
  slow_.resize(nodes.size(), false);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const State state = nodes[i].state;
    // One that is down by now is no faster for it.
    const bool slow = state == State::kSlow || (slow_[i] && state != State::kWell);
    if (slow_[i] == slow) continue;
    slow_[i] = slow;
    Log(context_.options.info_log, LogLevel::kInfo, "{}: node {} is {}", context_.name,
        nodes[i].address, nodes[i].ToString());
    context_.events.PaceChanged(nodes[i].address, slow);
  }
}

bool RedundancyKeeper::MustLeave(NodeId node) const {
  if (!context_.client->alive(node) || reporter_.draining(node)) return true;
  return reporter_.maintenance().Holds(node) && OthersSuffice();
}

bool RedundancyKeeper::OthersSuffice() const {
  const NodeStates nodes = LookAtNodes();
  const std::vector<NodeId> domains = context_.client->Domains();
  std::set<NodeId> others;
  for (size_t i = 0; i < domains.size(); ++i) {
    if (nodes.Takes(static_cast<NodeId>(i))) others.insert(domains[i]);
  }
  return others.size() > static_cast<size_t>(context_.redundancy.MostParity());
}

void RedundancyKeeper::LeaveLogSegments() {
  const auto leave = [this](NodeId node) { return MustLeave(node); };
  const bool in_log = database_.log != nullptr && database_.log->LeaveNodes(leave);
  NoteLeaving(in_log);
  if (!in_log) return;
  // Those that were never written, and those whose last records were flushed while they were open.
  ReleaseLog();
  database_.flush_log();
}

void RedundancyKeeper::NoteLeaving(bool in_log) {
  using State = pool::LeavingNode::State;
  std::vector<pool::LeavingNode> leaving;
  for (int i = 0; i < context_.client->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!reporter_.maintenance().Holds(node)) continue;
    const std::vector<ExtentAddr> copies = database_.committer->manifest()->copies();
    const bool in_manifest = std::any_of(copies.begin(), copies.end(), [&](const ExtentAddr& copy) {
      return copy.start.node == node;
    });
    leaving.push_back({.instance_id = context_.client->instance_id(node),
                       .state = !MustLeave(node)        ? State::kKept
                                : in_log || in_manifest ? State::kLeaving
                                                        : State::kLeft});
  }
  MutexLock lock(&mutex_);
  leaving_ = std::move(leaving);
}

void RedundancyKeeper::ReleaseLog() {
  StateCommitter* const committer = database_.committer;
  committer->ReleaseLog(database_.log, committer->manifest()->last_sequence());
}

namespace {

/// So many slow operations are reported, each by so much of its line.
constexpr size_t kSlowReported = 4;
constexpr size_t kSlowTextMax = 320;

void AddSlowOperations(const SlowOperations& operations, pool::DatabaseReport* report) {
  report->slow_operations = operations.count();
  const std::vector<SlowOperations::Line> lines = operations.Latest();
  const uint64_t now = operations.clock()->NowNanos();
  for (size_t i = lines.size() - std::min(lines.size(), kSlowReported); i < lines.size(); ++i) {
    report->latest_slow.push_back({.age_nanos = now - std::min(now, lines[i].at_nanos),
                                   .text = lines[i].text.substr(0, kSlowTextMax)});
  }
}

void AddTimes(const Statistics* statistics, pool::DatabaseReport* report) {
  if (statistics == nullptr) return;
  struct Kind {
    const char* name;
    Histograms histogram;
  };
  for (const Kind& kind : {Kind{"get", DB_GET}, Kind{"write", DB_WRITE},
                           Kind{"multiget", DB_MULTIGET}, Kind{"seek", DB_SEEK}}) {
    HistogramData data;
    statistics->histogramData(kind.histogram, &data);
    if (data.count == 0) continue;
    report->times.push_back({.operation = kind.name,
                             .count = data.count,
                             .median_micros = data.median,
                             .p99_micros = data.percentile99});
  }
}

}  // namespace

pool::DatabaseReport RedundancyKeeper::MakeReport() {
  pool::DatabaseReport report;
  report.repair = repairer_.progress();
  report.database_id = context_.database_id;
  report.redundancy = context_.redundancy.ToString();
  if (const Status joins = context_.client->JoinRefusal(); !joins.ok()) {
    report.notice = "a node cannot join: " + joins.ToString();
  }
  const SpaceReport space =
      MakeSpaceReport(database_.state->Versions(), context_.space, context_.copy_bytes.ByNode(),
                      context_.client->node_count());
  {
    MutexLock lock(&mutex_);
    report.leaving = leaving_;
  }
  for (const SpaceField& field : SpaceFields()) {
    report.space.emplace_back(field.name, field.value(space));
  }
  AddSlowOperations(context_.slow_operations, &report);
  AddTimes(context_.options.statistics.get(), &report);
  return report;
}

}  // namespace nacre
