#include "db/metrics/node_metrics.h"

#include <chrono>
#include <ranges>
#include <vector>

#include "pool/node_pace_report.h"

namespace nacre {
namespace {

using metrics::Kind;
using pool::NodePaceReport;

constexpr metrics::Description kUp = {"nacre_pool_node_up",
                                      "Whether this process reaches the node.", Kind::kGauge};
constexpr metrics::Description kSlow = {
    "nacre_pool_node_slow", "Whether it does without the node since it is slow.", Kind::kGauge};
constexpr metrics::Description kTimesSlow = {"nacre_pool_node_slow_total",
                                             "How often the node has become slow.", Kind::kCounter};
constexpr metrics::Description kLate = {"nacre_pool_node_late_waits_total",
                                        "Waits for the node that were longer than the patience.",
                                        Kind::kCounter};
constexpr metrics::Description kLatency = {
    "nacre_pool_node_latency_seconds",
    "Within what that share of the latest operations on the node ended.", Kind::kGauge};
constexpr metrics::Description kHedged = {
    "nacre_pool_hedged_reads_total", "Reads that were asked of other nodes since they were late.",
    Kind::kCounter};
constexpr metrics::Description kJobsLeft = {"nacre_pool_jobs_left_total",
                                            "Jobs that were taken from a node since it was slow.",
                                            Kind::kCounter};
constexpr metrics::Description kRead = {"nacre_pool_read_bytes_total",
                                        "Bytes that this process read from nodes.", Kind::kCounter};
constexpr metrics::Description kWritten = {
    "nacre_pool_written_bytes_total", "Bytes that this process wrote to nodes.", Kind::kCounter};

constexpr const char* kOperations[pool::kNodeOperations] = {"read", "write", "request"};

void CollectNode(const NodePaceReport& node, const metrics::Labels& labels, metrics::Page* page) {
  using State = NodePaceReport::State;
  page->Add(kUp, labels, node.state == State::kWell || node.state == State::kSlow);
  page->Add(kSlow, labels, node.state == State::kSlow);
  page->Add(kTimesSlow, labels, node.times_slow);
  page->Add(kLate, labels, node.late);
  for (size_t i = 0; i < pool::kNodeOperations; ++i) {
    if (node.times[i].operations == 0) continue;
    const metrics::Labels of_operation = metrics::With(labels, "operation", kOperations[i]);
    const auto seconds = [](std::chrono::nanoseconds time) {
      return std::chrono::duration<double>(time).count();
    };
    page->Add(kLatency, metrics::With(of_operation, "percentile", "50"),
              seconds(node.times[i].p50));
    page->Add(kLatency, metrics::With(of_operation, "percentile", "99"),
              seconds(node.times[i].p99));
  }
}

}  // namespace

void CollectNodes(const pool::PoolClient& client, const metrics::Labels& labels,
                  const std::string& role, metrics::Page* page) {
  const metrics::Labels of_client = metrics::With(labels, "role", role);
  page->Add(kHedged, of_client, client.hedged_reads());
  page->Add(kJobsLeft, of_client, client.jobs_left());
  page->Add(kRead, of_client, client.device()->traffic().bytes_read);
  page->Add(kWritten, of_client, client.device()->traffic().bytes_written);
  // The latest one at an address stands for those that were lost there before.
  const std::vector<NodePaceReport> nodes = pool::ReportPace(client);
  for (const NodePaceReport& node : nodes | std::views::reverse) {
    CollectNode(node, metrics::With(of_client, "node", node.address), page);
  }
}

}  // namespace nacre
