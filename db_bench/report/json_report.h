#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db_bench/config.h"
#include "db_bench/engine/engine.h"
#include "db_bench/process_usage.h"
#include "db_bench/report/result.h"
#include "nacre/status.h"

namespace nacre::bench {

/// What --json writes. Names and types in it are kept: scripts read them.
///
///     {"config": {FLAG: VALUE, ...},
///      "engine": {"name": S, "description": S, "warning": S},
///      "benchmarks": [{"name": S, "ops": N, "seconds": X, "ops_per_sec": X, "mb_per_sec": X,
///                      "micros_per_op": X, "cpu_seconds": X, "process_cpu_seconds": X, "found": N,
///                      "lookups": N, "background_ops": N, "p50_us": X, "p99_us": X, "p999_us": X,
///                      "latency_samples": N, "durability": {...}, "network": {...},
///                      "compaction": {...}, "encoding": {...}}, ...],
///      "space": {"user_bytes": N, "stored_bytes": N, "compute_bytes": N, "index_bytes": N,
///                "parts": {NAME: N, ...}},
///      "durability": {NAME: N, ...},
///      "network": {"compute_read": N, "compute_written": N,
///                  "memnode_read": N, "memnode_written": N},
///      "compaction": {"bytes_read": N, "bytes_written": N, "cpu_seconds": X},
///      "encoding": {"data_bytes": N, "cpu_seconds": X},
///      "process": {"threads": N, "anonymous_bytes": N}}
///
/// "network", "compaction" and "encoding" (of parity, in this process) of a benchmark are what was
/// moved while it ran; those at the end are of the whole run. "durability" of a benchmark is what
/// had been counted when it ended. "process" is this one with the database open at the end;
/// "anonymous_bytes" leaves out nodes' memory that it has mapped. "cpu_seconds" is the CPU time of
/// the benchmark's threads, "process_cpu_seconds" that of all. Percentiles are 0 if nothing was
/// timed. The benchmark takeover also has "takeover": {"first_get_us": N, "first_put_us": N,
/// "steps": {NAME: MICROSECONDS, ...}}.
struct JsonReport {
  const BenchConfig* config = nullptr;
  std::string engine_description;
  std::string engine_warning;
  const std::vector<BenchmarkResult>* results = nullptr;
  SpaceUsage space;
  TrafficCounters traffic;
  std::vector<std::pair<std::string, uint64_t>> durability{};
  ProcessUsage process{};

  std::string ToString() const;
};

/// `IOError` naming the file if it could not be written.
Status CheckWritable(const std::string& path);
Status WriteFile(const std::string& path, std::string_view text);

/// Adds quotes. Bytes that are no printable ASCII become \u00XX.
std::string JsonString(std::string_view text);

}  // namespace nacre::bench
