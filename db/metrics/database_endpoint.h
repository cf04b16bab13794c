#pragma once

#include <memory>
#include <string>

#include "metrics/endpoint.h"
#include "metrics/page.h"
#include "nacre/options.h"
#include "nacre/status.h"

namespace nacre {

// Where a database shows its metrics, and what is common to those of owners and followers.

/// `options.metrics_address`, or else what NACRE_METRICS says; empty: nowhere.
std::string MetricsAddress(const DBOptions& options);

/// Takes a share in the address of `options`, which is null if they name none. What the options
/// name has to be listened at: fails as Endpoint::Open. What only the environment names is for all
/// processes that have it, of which one gets the address: `options.info_log` is told.
Status OpenEndpoint(const DBOptions& options, const std::string& database,
                    std::unique_ptr<metrics::Endpoint>* endpoint);

/// Has `options` count what the metrics of an owner tell, if nothing is counted yet.
void CountForMetrics(const std::string& database, DBOptions* options);

/// How the metrics of a database are told from those of others. A shard has the name KEYSPACE@ID
/// (sharding/shard_map.h): it is shown as a part of its keyspace.
struct DatabaseLabels {
  explicit DatabaseLabels(const std::string& name);

  /// Whether it has what a keyspace knows of its shards, which no operation of the application is
  /// about.
  bool is_map() const { return shard == "map"; }

  std::string shard;      ///< Empty: it is none.
  metrics::Labels own;    ///< The database, and the shard if it is one.
  metrics::Labels whole;  ///< The database, or the keyspace for all of its shards.
};

}  // namespace nacre
