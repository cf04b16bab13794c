#include "db_bench/report/report.h"

#include <algorithm>
#include <cinttypes>

#include "db_bench/value_sizes.h"

namespace nacre::bench {
namespace {

/// Nothing if the engine has nothing to warn of.
void PrintWarning(std::FILE* out, const Engine& engine) {
  const std::string warning = engine.Warning();
  if (warning.empty()) return;
  const std::string frame(warning.size() + 13, '*');
  std::fprintf(out, "%s\n* WARNING: %s *\n%s\n", frame.c_str(), warning.c_str(), frame.c_str());
}

void PrintOpenLoop(std::FILE* out, const BenchmarkResult& result) {
  for (size_t type = 0; type < kOpTypes; ++type) {
    if (!result.latencies_by_type[type].has_value()) continue;
    const LatencyCounts& counts = *result.latencies_by_type[type];
    std::fprintf(out, "  %-18s microseconds from the intended start:",
                 OpTypeName(static_cast<OpType>(type)));
    for (const double p : {50.0, 90.0, 99.0, 99.9, 99.99}) {
      std::fprintf(out, " p%g %.2f", p, counts.PercentileNanos(p) / 1000);
    }
    std::fprintf(out, " max %.2f\n", static_cast<double>(counts.max_nanos()) / 1000);
  }
}

void PrintMemberFigures(std::FILE* out, const BenchmarkResult& result) {
  for (const MemberFigure& figure : result.member_figures) {
    const auto millis = [&](double p) { return static_cast<double>(figure.Percentile(p)) * 1e-6; };
    std::fprintf(out, "  %-30s p50 %.3f ms, p99 %.3f ms, max %.3f ms, of %zu\n",
                 figure.text.c_str(), millis(50), millis(99), millis(100), figure.nanos.size());
  }
}

}  // namespace

void PrintHeader(std::FILE* out, const BenchConfig& config, const Engine& engine) {
  const double mib = (static_cast<double>(config.key_size) + ValueSizes(config).Mean()) *
                     static_cast<double>(config.num) / 1048576.0;
  std::fprintf(out, "Engine:     %s\n", engine.Describe().c_str());
  std::fprintf(out, "Keys:       %zu bytes each\n", config.key_size);
  if (config.value_size_distribution == ValueSizeDistribution::kFixed) {
    std::fprintf(out, "Values:     %zu bytes each\n", config.value_size_max);
  } else {
    std::fprintf(out, "Values:     %zu to %zu bytes each\n", config.value_size_min,
                 config.value_size_max);
  }
  std::fprintf(out, "Entries:    %" PRIu64 "\n", config.num);
  std::fprintf(out, "RawSize:    %.1f MB (estimated)\n", mib);
  std::fprintf(out, "Threads:    %d\n", config.threads);
  std::fprintf(out, "Seed:       %" PRIu64 "\n", config.seed);
  std::fprintf(out, "Write rate: %" PRIu64 " bytes/second\n", config.benchmark_write_rate_limit);
  std::fprintf(out, "Compression: NoCompression\n");
  std::fprintf(out, "WAL:        %s\n", config.disable_wal ? "off" : "on");
  PrintWarning(out, engine);
  std::fprintf(out, "------------------------------------------------\n");
  std::fflush(out);
}

std::string NoteText(const BenchmarkResult& result) {
  char text[160] = "";
  if (result.note == ResultNote::kFound) {
    std::snprintf(text, sizeof(text), "(%" PRIu64 " of %" PRIu64 " found)", result.found,
                  result.lookups);
  } else if (result.note == ResultNote::kMixed) {
    std::snprintf(text, sizeof(text),
                  "( reads:%" PRIu64 " writes:%" PRIu64 " total:%" PRIu64 " found:%" PRIu64 ")",
                  result.lookups, result.ops - result.lookups, result.ops, result.found);
  } else if (result.note == ResultNote::kTransactions) {
    std::snprintf(text, sizeof(text), "( transactions:%" PRIu64 " aborts:%" PRIu64 ")",
                  result.lookups, result.lookups - result.found);
  }
  return text;
}

void PrintResult(std::FILE* out, const BenchmarkResult& result) {
  std::string extra;
  if (result.bytes > 0) {
    char rate[64];
    std::snprintf(rate, sizeof(rate), " %6.1f MB/s", result.MbPerSecond());
    extra = rate;
  }
  if (result.plain_mb_per_second > 0) {
    char plain[64];
    std::snprintf(plain, sizeof(plain), " (plain writing: %.1f MB/s)", result.plain_mb_per_second);
    extra += plain;
  }
  if (const std::string note = NoteText(result); !note.empty()) extra += " " + note;
  std::fprintf(out, "%-12s : %11.3f micros/op %ld ops/sec %.3f seconds %" PRIu64 " operations;%s\n",
               result.name.c_str(),
               result.thread_seconds * 1e6 / static_cast<double>(std::max<uint64_t>(result.ops, 1)),
               static_cast<long>(result.OpsPerSecond()), result.seconds, result.ops, extra.c_str());
  if (result.open_loop) PrintOpenLoop(out, result);
  PrintMemberFigures(out, result);
  for (size_t type = 0; type < kOpTypes; ++type) {
    if (!result.histograms[type].has_value()) continue;
    std::fprintf(out, "Microseconds per %s:\n%s\n", OpTypeName(static_cast<OpType>(type)),
                 result.histograms[type]->ToString().c_str());
  }
  std::fflush(out);
}

void PrintSummary(std::FILE* out, const Engine& engine,
                  const std::vector<BenchmarkResult>& results) {
  if (results.empty()) return;
  size_t width = 9;
  for (const BenchmarkResult& result : results) width = std::max(width, result.name.size());
  const int columns = static_cast<int>(width);
  std::fprintf(out, "\n%-*s %11s %9s %9s %9s %9s %9s  %s\n", columns, "benchmark", "ops/s", "MB/s",
               "p50 us", "p99 us", "p99.9 us", "cpu us", "found");
  for (const BenchmarkResult& result : results) {
    std::fprintf(out, "%-*s %11.0f %9.1f %9.2f %9.2f %9.2f %9.2f  ", columns, result.name.c_str(),
                 result.OpsPerSecond(), result.MbPerSecond(),
                 result.latencies.PercentileNanos(50) / 1000,
                 result.latencies.PercentileNanos(99) / 1000,
                 result.latencies.PercentileNanos(99.9) / 1000, result.CpuMicrosPerOp());
    if (result.note == ResultNote::kNone) {
      std::fprintf(out, "-\n");
    } else {
      std::fprintf(out, "%" PRIu64 " of %" PRIu64 "\n", result.found, result.lookups);
    }
  }
  PrintWarning(out, engine);
  std::fflush(out);
}

}  // namespace nacre::bench
