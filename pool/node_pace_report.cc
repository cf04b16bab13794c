#include "pool/node_pace_report.h"

#include <fmt/format.h>

#include "pool/connect/fabric.h"

namespace nacre::pool {

const char* NameOf(NodePaceReport::State state) {
  switch (state) {
    case NodePaceReport::State::kWell:
      return "well";
    case NodePaceReport::State::kSlow:
      return "slow";
    case NodePaceReport::State::kDown:
      return "down";
    case NodePaceReport::State::kLost:
      break;
  }
  return "lost";
}

std::string NodePaceReport::ToString() const {
  static constexpr const char* kNames[kNodeOperations] = {"read", "write", "request"};
  std::string text = fmt::format("{} (slow {} times, late {})", NameOf(state), times_slow, late);
  for (size_t i = 0; i < kNodeOperations; ++i) {
    if (times[i].operations == 0) continue;
    text += fmt::format(", {} p50 {} us p99 {} us", kNames[i], times[i].p50.count() / 1000,
                        times[i].p99.count() / 1000);
  }
  return text;
}

std::vector<NodePaceReport> ReportPace(const PoolClient& client) {
  using State = NodePaceReport::State;
  const Fabric& fabric = *client.fabric();
  std::vector<NodePaceReport> reports;
  for (int i = 0; i < fabric.node_count(); ++i) {
    const NodeLink& link = *fabric.link(static_cast<NodeId>(i));
    const NodePace& pace = link.pace();
    NodePaceReport& report = reports.emplace_back();
    report.node = link.id();
    report.address = link.address();
    report.state = link.state() == NodeLink::State::kLost ? State::kLost
                   : !link.alive()                        ? State::kDown
                   : pace.slow()                          ? State::kSlow
                                                          : State::kWell;
    report.times_slow = pace.times_slow();
    report.late = pace.late();
    for (size_t j = 0; j < kNodeOperations; ++j) {
      const OperationTimes& times = pace.times(static_cast<NodeOperation>(j));
      report.times[j] = {
          .operations = times.count(), .p50 = times.Within(0.5), .p99 = times.Within(0.99)};
    }
  }
  return reports;
}

}  // namespace nacre::pool
