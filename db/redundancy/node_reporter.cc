#include "db/redundancy/node_reporter.h"

#include <algorithm>
#include <utility>

#include "pool/reports.h"

namespace nacre {

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
  pool::DatabaseReport report = calls_.make_report();
  report.features_on = client_->features_on();
  pool::Directions latest = directions();
  const uint64_t known = latest.version;
  std::vector<pool::LogReader> readers;
  for (int i = 0; i < client_->node_count(); ++i) {
    if (task_.stopping()) return;
    const auto node = static_cast<NodeId>(i);
    if (!client_->alive(node)) continue;
    pool::Directions told;
    // A node of an earlier version does not understand, one that died is the monitor's business.
    if (!pool::ReportDatabase(client_, node, report, &told, &readers).ok()) continue;
    maintenance_.Hear(told);
    client_->HearFeatures(told.features_on);
    if (told.version > latest.version) latest = std::move(told);
  }
  has_asked_.store(true, std::memory_order_release);
  calls_.heard_of_readers(readers);
  if (latest.version == known) return;
  {
    MutexLock lock(&mutex_);
    directions_ = std::move(latest);
  }
  calls_.directions_changed();
}

}  // namespace nacre
