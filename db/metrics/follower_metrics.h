#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "db/metrics/database_endpoint.h"
#include "metrics/endpoint.h"
#include "metrics/page.h"
#include "pool/pool_client.h"

namespace nacre {

/// How far a follower is, and what that took.
struct FollowerProgress {
  /// Since the last look began that found all there was to be found; 0 at first.
  std::chrono::nanoseconds lag{0};
  bool healthy = true;  ///< The last look failed, otherwise.
  uint64_t sequence = 0;
  uint64_t catch_ups = 0;
  uint64_t reads_again = 0;
  uint64_t log_bytes_read = 0;
  uint64_t manifest_bytes_read = 0;
  uint64_t manifest_reloads = 0;
};

/// Shows how a follower keeps up, as long as this lives.
class FollowerMetrics final : public metrics::Source {
 public:
  /// `interval`: how often the follower looks by itself; 0: never. `progress` is called by other
  /// threads, and `client` used, as long as this lives.
  FollowerMetrics(const std::string& database, std::chrono::milliseconds interval,
                  const pool::PoolClient* client, std::function<FollowerProgress()> progress,
                  std::unique_ptr<metrics::Endpoint> endpoint);

  void Collect(metrics::Page* page) const override;

 private:
  const DatabaseLabels labels_;
  const std::chrono::milliseconds interval_;
  const pool::PoolClient* const client_;
  const std::function<FollowerProgress()> progress_;
  const std::unique_ptr<metrics::Endpoint> endpoint_;  ///< The first member to go.
};

}  // namespace nacre
