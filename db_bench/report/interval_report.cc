#include "db_bench/report/interval_report.h"

#include <cinttypes>
#include <cstdio>
#include <ctime>

namespace nacre::bench {

void PrintInterval(const Interval& interval) {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char time[32];
  std::strftime(time, sizeof(time), "%Y/%m/%d-%H:%M:%S", &local);
  const double seconds = static_cast<double>(interval.nanos) * 1e-9;
  const double total_seconds = static_cast<double>(interval.total_nanos) * 1e-9;
  std::fprintf(stderr,
               "%s  ... thread %d: (%" PRIu64 ",%" PRIu64
               ") ops and (%.1f,%.1f) ops/second in (%.6f,%.6f) seconds\n",
               time, interval.thread, interval.ops, interval.total_ops,
               seconds > 0 ? static_cast<double>(interval.ops) / seconds : 0,
               total_seconds > 0 ? static_cast<double>(interval.total_ops) / total_seconds : 0,
               seconds, total_seconds);
}

}  // namespace nacre::bench
