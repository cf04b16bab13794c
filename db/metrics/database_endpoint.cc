#include "db/metrics/database_endpoint.h"

#include <algorithm>
#include <cctype>

#include "nacre/statistics.h"
#include "util/log.h"

namespace nacre {

std::string MetricsAddress(const DBOptions& options) {
  return metrics::AddressOr(options.metrics_address);
}

Status OpenEndpoint(const DBOptions& options, const std::string& database,
                    std::unique_ptr<metrics::Endpoint>* endpoint) {
  Status left_out;
  NACRE_RETURN_IF_ERROR(metrics::OpenEndpoint(options.metrics_address, endpoint, &left_out));
  if (*endpoint != nullptr) {
    Log(options.info_log, LogLevel::kInfo, "{}: metrics at {}", database, (*endpoint)->address());
  } else if (!left_out.ok()) {
    Log(options.info_log, LogLevel::kWarn, "{}: it shows no metrics: {}", database,
        left_out.ToString());
  }
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
