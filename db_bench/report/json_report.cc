#include "db_bench/report/json_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace nacre::bench {
namespace {

std::string CountersJson(const std::vector<std::pair<std::string, uint64_t>>& counters) {
  std::string text = "{";
  for (const auto& [name, value] : counters) {
    if (text.back() != '{') text += ", ";
    text += JsonString(name) + ": " + std::to_string(value);
  }
  return text + "}";
}

std::string TakeoverJson(const TakeoverResult& takeover) {
  return fmt::format(R"({{"first_get_us": {}, "first_put_us": {}, "steps": {}}})",
                     takeover.first_get_micros, takeover.first_put_micros,
                     CountersJson(takeover.steps));
}

/// "longest_wait": {"p50_us": ..., ...}, ...
std::string MemberFiguresJson(const std::vector<MemberFigure>& figures) {
  std::string text = "{";
  for (const MemberFigure& figure : figures) {
    const auto micros = [&](double p) { return static_cast<double>(figure.Percentile(p)) * 1e-3; };
    if (text.back() != '{') text += ", ";
    text += fmt::format(R"({}: {{"p50_us": {}, "p99_us": {}, "max_us": {}, "count": {}}})",
                        JsonString(figure.name), micros(50), micros(99), micros(100),
                        figure.nanos.size());
  }
  return text + "}";
}

std::string NetworkJson(const TrafficCounters& traffic) {
  return fmt::format(
      R"({{"compute_read": {}, "compute_written": {}, "memnode_read": {}, "memnode_written": {}}})",
      traffic.compute_read, traffic.compute_written, traffic.memnode_read, traffic.memnode_written);
}

std::string CompactionJson(const TrafficCounters& traffic) {
  return fmt::format(R"({{"bytes_read": {}, "bytes_written": {}, "cpu_seconds": {}}})",
                     traffic.compaction_read, traffic.compaction_written,
                     static_cast<double>(traffic.compaction_cpu_nanos) * 1e-9);
}

std::string EncodingJson(const TrafficCounters& traffic) {
  return fmt::format(R"({{"data_bytes": {}, "cpu_seconds": {}}})", traffic.encoded_bytes,
                     static_cast<double>(traffic.encoding_cpu_nanos) * 1e-9);
}

std::string LatencyJson(std::string_view prefix, const LatencyCounts& latencies) {
  const auto percentile = [&](double p) { return latencies.PercentileNanos(p) / 1000; };
  return fmt::format(
      R"("{0}p50_us": {1}, "{0}p99_us": {2}, "{0}p999_us": {3}, "{0}latency_samples": {4})", prefix,
      percentile(50), percentile(99), percentile(99.9), latencies.count());
}

/// Latencies by kind of operation, and how many of the operations timed read nodes' memory 0, 1, 2
/// ... times.
std::string LatenciesJson(const BenchmarkResult& result) {
  std::string text = "{";
  for (size_t type = 0; type < kOpTypes; ++type) {
    if (!result.latencies_by_type[type].has_value()) continue;
    const LatencyCounts& counts = *result.latencies_by_type[type];
    if (text.back() != '{') text += ", ";
    text += JsonString(OpTypeName(static_cast<OpType>(type))) + ": {";
    for (const auto& [name, p] :
         {std::pair("p50_us", 50.0), std::pair("p90_us", 90.0), std::pair("p99_us", 99.0),
          std::pair("p999_us", 99.9), std::pair("p9999_us", 99.99)}) {
      text += fmt::format(R"("{}": {}, )", name, counts.PercentileNanos(p) / 1000);
    }
    text += fmt::format(R"("max_us": {}, "samples": {}, "remote_reads": [{}]}})",
                        static_cast<double>(counts.max_nanos()) / 1000, counts.count(),
                        fmt::join(result.remote_reads[type], ", "));
  }
  return text + "}";
}

std::string ResultJson(const BenchmarkResult& result) {
  std::string text = fmt::format(
      R"({{"name": {}, "ops": {}, "seconds": {}, "ops_per_sec": {}, "mb_per_sec": {}, )",
      JsonString(result.name), result.ops, result.seconds, result.OpsPerSecond(),
      result.MbPerSecond());
  text += fmt::format(
      R"("micros_per_op": {}, "cpu_seconds": {}, "process_cpu_seconds": {}, )",
      result.ops == 0 ? 0 : result.thread_seconds * 1e6 / static_cast<double>(result.ops),
      result.cpu_seconds, result.process_cpu_seconds);
  text += fmt::format(R"("found": {}, "lookups": {}, "background_ops": {}, )", result.found,
                      result.lookups, result.background_ops);
  text += LatencyJson("", result.latencies) + ", ";
  text +=
      fmt::format(R"("open_loop": {}, "latencies": {}, )", result.open_loop, LatenciesJson(result));
  if (result.background_ops > 0) {
    text += LatencyJson("background_", result.background_latencies) + ", ";
  }
  if (result.takeover.has_value()) {
    text += "\"takeover\": " + TakeoverJson(*result.takeover) + ", ";
  }
  if (!result.member_figures.empty()) {
    text += "\"members\": " + MemberFiguresJson(result.member_figures) + ", ";
  }
  if (result.plain_mb_per_second > 0) {
    text += fmt::format(R"("plain_mb_per_sec": {}, )", result.plain_mb_per_second);
  }
  text += "\"durability\": " + CountersJson(result.durability) + ", ";
  text += fmt::format(R"("network": {}, "compaction": {}, "encoding": {}}})",
                      NetworkJson(result.traffic), CompactionJson(result.traffic),
                      EncodingJson(result.traffic));
  return text;
}

Status FileError(const std::string& path) {
  return Status::IOError("cannot write " + path + ": " + std::strerror(errno));
}

}  // namespace

std::string JsonString(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted.push_back('\\');
      quoted.push_back(c);
    } else if (byte < 0x20 || byte > 0x7e) {
      quoted += fmt::format("\\u{:04x}", byte);
    } else {
      quoted.push_back(c);
    }
  }
  quoted.push_back('"');
  return quoted;
}

std::string JsonReport::ToString() const {
  std::string text = "{\"config\": {";
  for (const auto& [name, value] : config->flags) {
    if (text.back() != '{') text += ",\n            ";
    text += JsonString(name) + ": " + value;
  }
  text += fmt::format("}},\n \"engine\": {{\"name\": {}, \"description\": {}, \"warning\": {}}},\n",
                      JsonString(EngineName(config->engine)), JsonString(engine_description),
                      JsonString(engine_warning));
  text += " \"benchmarks\": [";
  for (const BenchmarkResult& result : *results) {
    if (text.back() != '[') text += ",\n                ";
    text += ResultJson(result);
  }
  text += fmt::format(
      "],\n \"space\": {{\"user_bytes\": {}, \"stored_bytes\": {}, \"compute_bytes\": {}, "
      "\"index_bytes\": {}, \"parts\": {}}},\n",
      space.user_bytes, space.stored_bytes, space.compute_bytes, space.index_bytes,
      CountersJson(space.parts));
  text += " \"durability\": " + CountersJson(durability) + ",\n";
  text += " \"network\": " + NetworkJson(traffic) + ",\n";
  text += " \"compaction\": " + CompactionJson(traffic) + ",\n";
  text += " \"encoding\": " + EncodingJson(traffic) + ",\n";
  text += fmt::format(" \"process\": {{\"threads\": {}, \"anonymous_bytes\": {}}}}}\n",
                      process.threads, process.anonymous_bytes);
  return text;
}

Status CheckWritable(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    errno = EISDIR;
    return FileError(path);
  }
  const bool exists = access(path.c_str(), F_OK) == 0;
  const std::string checked = exists ? path : folder.empty() ? "." : folder.string();
  return access(checked.c_str(), W_OK) == 0 ? Status::OK() : FileError(path);
}

Status WriteFile(const std::string& path, std::string_view text) {
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Closer> file(std::fopen(path.c_str(), "w"));
  if (file == nullptr) return FileError(path);
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0) {
    return FileError(path);
  }
  return Status::OK();
}

}  // namespace nacre::bench
