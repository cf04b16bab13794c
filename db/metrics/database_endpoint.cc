#include "db/metrics/database_endpoint.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "nacre/statistics.h"
#include "util/log.h"

namespace nacre {

std::string MetricsAddress(const DBOptions& options) {
  if (!options.metrics_address.empty()) return options.metrics_address;
  const char* const from_environment = std::getenv("NACRE_METRICS");
  return from_environment == nullptr ? "" : from_environment;
}

Status OpenEndpoint(const DBOptions& options, const std::string& database,
                    std::unique_ptr<metrics::Endpoint>* endpoint) {
  endpoint->reset();
  const std::string address = MetricsAddress(options);
  if (address.empty()) return Status::OK();
  const Status status = metrics::Endpoint::Open(address, endpoint);
  if (status.ok()) {
    Log(options.info_log, LogLevel::kInfo, "{}: metrics at {}", database, (*endpoint)->address());
    return Status::OK();
  }
  if (!options.metrics_address.empty()) return status;
  Log(options.info_log, LogLevel::kWarn, "{}: it shows no metrics: NACRE_METRICS: {}", database,
      status.ToString());
  return Status::OK();
}

void CountForMetrics(const std::string& database, DBOptions* options) {
  if (options->statistics != nullptr || DatabaseLabels(database).is_map()) return;
  options->statistics = CreateDBStatistics();
}

DatabaseLabels::DatabaseLabels(const std::string& name) {
  const size_t at = name.rfind('@');
  if (at != std::string::npos && at > 0 && at + 1 < name.size()) {
    const std::string id = name.substr(at + 1);
    const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
    if (id == "map" || std::ranges::all_of(id, is_digit)) shard = id;
  }
  whole = {{"database", shard.empty() ? name : name.substr(0, at)}};
  own = shard.empty() ? whole : metrics::With(whole, "shard", shard);
}

}  // namespace nacre
