#include "db/redundancy/node_reporter.h"

#include <algorithm>
#include <utility>

#include "pool/reports.h"

namespace nacre {

NodeReporter::NodeReporter(pool::PoolClient* client,
                           std::function<pool::DatabaseReport()> make_report,
                           std::function<void()> directions_changed)
    : client_(client),
      make_report_(std::move(make_report)),
      directions_changed_(std::move(directions_changed)) {}

void NodeReporter::Start() {
  task_.Start(client_->PeriodicOn(&pool::Background::looks), "nacre-report", kPeriod,
              PeriodicTask::Begin::kWithWork, [this] { ReportOnce(); });
}

pool::Directions NodeReporter::directions() const {
  MutexLock lock(&mutex_);
  return directions_;
}

bool NodeReporter::draining(NodeId node) const {
  const uint64_t instance = client_->instance_id(node);
  MutexLock lock(&mutex_);
  return std::find(directions_.draining.begin(), directions_.draining.end(), instance) !=
         directions_.draining.end();
}

void NodeReporter::ReportOnce() {
  const pool::DatabaseReport report = make_report_();
  pool::Directions latest = directions();
  const uint64_t known = latest.version;
  for (int i = 0; i < client_->node_count(); ++i) {
    if (task_.stopping()) return;
    const auto node = static_cast<NodeId>(i);
    if (!client_->alive(node)) continue;
    pool::Directions told;
    // A node of an earlier version does not understand, one that died is the monitor's business.
    if (!pool::ReportDatabase(client_, node, report, &told).ok()) continue;
    if (told.version > latest.version) latest = std::move(told);
  }
  if (latest.version == known) return;
  {
    MutexLock lock(&mutex_);
    directions_ = std::move(latest);
  }
  directions_changed_();
}

}  // namespace nacre
