#include "db_bench/report/latency_files.h"

#include <fmt/format.h>

#include <cmath>

#include "db_bench/report/json_report.h"

namespace nacre::bench {

std::string HdrText(const LatencyCounts& counts) {
  std::string text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n";
  const auto total = static_cast<double>(counts.count());
  const double max = static_cast<double>(counts.max_nanos()) / 1000;
  uint64_t cumulative = 0;
  double sum = 0;
  double squares = 0;
  counts.ForEachBucket([&](double nanos, uint64_t count) {
    const double micros = nanos / 1000;
    cumulative += count;
    sum += micros * static_cast<double>(count);
    squares += micros * micros * static_cast<double>(count);
    if (cumulative == counts.count()) {
      text += fmt::format("{:12.3f} {:14.12f} {:10}\n", max, 1.0, cumulative);
    } else {
      const double share = static_cast<double>(cumulative) / total;
      text += fmt::format("{:12.3f} {:14.12f} {:10} {:14.2f}\n", micros, share, cumulative,
                          1 / (1 - share));
    }
  });
  const double mean = total > 0 ? sum / total : 0;
  const double variance = total > 0 ? std::max(0.0, squares / total - mean * mean) : 0;
  text +=
      fmt::format("#[Mean    = {:12.3f}, StdDeviation   = {:12.3f}]\n", mean, std::sqrt(variance));
  text += fmt::format("#[Max     = {:12.3f}, Total count    = {:12}]\n", max, counts.count());
  text += fmt::format("#[Buckets = {:12}, SubBuckets     = {:12}]\n", LatencyCounts::kPowers,
                      LatencyCounts::kSub);
  return text;
}

Status WriteLatencyFiles(const std::string& prefix, const std::vector<BenchmarkResult>& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    for (size_t type = 0; type < kOpTypes; ++type) {
      if (!results[i].latencies_by_type[type].has_value()) continue;
      NACRE_RETURN_IF_ERROR(WriteFile(fmt::format("{}{}-{}-{}.hgrm", prefix, i + 1, results[i].name,
                                                  OpTypeName(static_cast<OpType>(type))),
                                      HdrText(*results[i].latencies_by_type[type])));
    }
  }
  return Status::OK();
}

}  // namespace nacre::bench
