#include "ctl/top/node_rates.h"

#include <utility>

namespace nacre::ctl {
namespace {

using pool::NodeStats;

/// Whether the process that told `now` is the one that had told `before`. A node that keeps its
/// memory is the same instance after a restart, so that its own time and its counters have to tell.
bool GoesOn(const NodeStats& before, const NodeStats& now) {
  if (before.instance_id != now.instance_id || now.uptime_nanos <= before.uptime_nanos) {
    return false;
  }
  for (const pool::NodeFigure& figure : pool::NodeFigures()) {
    if (figure.is_counter() && now.*figure.value < before.*figure.value) return false;
  }
  return true;
}

}  // namespace

NodeRates& NodeRates::operator+=(const NodeRates& other) {
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  requests += other.requests;
  request_seconds += other.request_seconds;
  jobs += other.jobs;
  job_cores += other.job_cores;
  rebuilt += other.rebuilt;
  return *this;
}

std::optional<NodeRates> RateMeter::Take(const NodeStats& now) {
  const std::optional<NodeStats> before = std::exchange(before_, now);
  if (!before.has_value() || !GoesOn(*before, now)) return std::nullopt;
  const double seconds = static_cast<double>(now.uptime_nanos - before->uptime_nanos) / 1e9;
  const auto grown = [&](uint64_t NodeStats::*counter) {
    return static_cast<double>(now.*counter - (*before).*counter) / seconds;
  };
  return NodeRates{
      .seconds = seconds,
      .bytes_read = grown(&NodeStats::bytes_read),
      .bytes_written = grown(&NodeStats::bytes_written),
      .requests = grown(&NodeStats::requests),
      .request_seconds = grown(&NodeStats::request_nanos) / 1e9,
      .jobs = grown(&NodeStats::compactions) + grown(&NodeStats::flushes),
      .job_cores = (grown(&NodeStats::compaction_cpu_nanos) + grown(&NodeStats::flush_cpu_nanos) +
                    grown(&NodeStats::rebuild_cpu_nanos)) /
                   1e9,
      .rebuilt = grown(&NodeStats::rebuilt_bytes)};
}

}  // namespace nacre::ctl
