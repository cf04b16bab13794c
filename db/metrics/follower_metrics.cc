#include "db/metrics/follower_metrics.h"

#include <utility>

#include "db/metrics/node_metrics.h"

namespace nacre {
namespace {

using metrics::Description;
using metrics::Kind;
using Progress = const FollowerProgress&;

struct FollowerFigure {
  Description metric;
  double (*value)(Progress progress);
};

constexpr FollowerFigure kFollowerFigures[] = {
    {{"nacre_follower_lag_seconds",
      "Since the last look began that found all there was to be found.", Kind::kGauge},
     [](Progress p) { return std::chrono::duration<double>(p.lag).count(); }},
    {{"nacre_follower_healthy", "0 while looks fail: the log says why.", Kind::kGauge},
     [](Progress p) { return p.healthy ? 1.0 : 0.0; }},
    {{"nacre_follower_sequence", "All up to this sequence number is shown.", Kind::kGauge},
     [](Progress p) { return static_cast<double>(p.sequence); }},
    {{"nacre_follower_catch_ups_total", "Looks at what is new.", Kind::kCounter},
     [](Progress p) { return static_cast<double>(p.catch_ups); }},
    {{"nacre_follower_reads_again_total",
      "Reads that met reused memory, and were made again in a newer state.", Kind::kCounter},
     [](Progress p) { return static_cast<double>(p.reads_again); }},
    {{"nacre_follower_log_read_bytes_total", "Bytes of the log that were read.", Kind::kCounter},
     [](Progress p) { return static_cast<double>(p.log_bytes_read); }},
    {{"nacre_follower_manifest_read_bytes_total", "Bytes of the manifest that were read.",
      Kind::kCounter},
     [](Progress p) { return static_cast<double>(p.manifest_bytes_read); }},
    {{"nacre_follower_manifest_reloads_total", "Times that the manifest was read as a whole.",
      Kind::kCounter},
     [](Progress p) { return static_cast<double>(p.manifest_reloads); }},
};

constexpr Description kInterval = {"nacre_follower_interval_seconds",
                                   "How often it looks by itself; 0: never.", Kind::kGauge};

}  // namespace

FollowerMetrics::FollowerMetrics(const std::string& database, std::chrono::milliseconds interval,
                                 const pool::PoolClient* client,
                                 std::function<FollowerProgress()> progress,
                                 std::unique_ptr<metrics::Endpoint> endpoint)
    : labels_(database),
      interval_(interval),
      client_(client),
      progress_(std::move(progress)),
      endpoint_(std::move(endpoint)) {
  endpoint_->Show(this);
}

void FollowerMetrics::Collect(metrics::Page* page) const {
  const FollowerProgress progress = progress_();
  for (const FollowerFigure& figure : kFollowerFigures) {
    page->Add(figure.metric, labels_.own, figure.value(progress));
  }
  page->Add(kInterval, labels_.own, std::chrono::duration<double>(interval_).count());
  CollectNodes(*client_, labels_.whole, "follower", page);
}

}  // namespace nacre
