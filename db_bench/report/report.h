#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "db_bench/config.h"
#include "db_bench/engine/engine.h"
#include "db_bench/report/result.h"

// What db_bench prints, in the form of RocksDB's db_bench so that the same scripts read it.

namespace nacre::bench {

/// Keys, values and sizes, the engine, and what to know of it.
void PrintHeader(std::FILE* out, const BenchConfig& config, const Engine& engine);

/// "readrandom   :       1.340 micros/op 743964 ops/sec 0.027 seconds 20000 operations;  258.0 MB/s
/// (17313 of 20000 found)" in one line, and the histograms if there are any. micros/op is the time
/// of the threads, so with several threads it is not the inverse of ops/sec.
void PrintResult(std::FILE* out, const BenchmarkResult& result);

/// A table of all results, and once more what to know of the engine. "cpu us" is the CPU time of
/// the threads per operation.
void PrintSummary(std::FILE* out, const Engine& engine,
                  const std::vector<BenchmarkResult>& results);

/// "(N of M found)", "( reads:N writes:N total:N found:N)" or nothing.
std::string NoteText(const BenchmarkResult& result);

}  // namespace nacre::bench
