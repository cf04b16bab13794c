#pragma once

#include <string>
#include <vector>

#include "db_bench/report/latency.h"
#include "db_bench/report/result.h"
#include "nacre/status.h"

namespace nacre::bench {

/// The distribution in microseconds, in the text form that tools of HDR histograms read and plot: a
/// line for each bucket that holds something, with the share of all that is not above it.
std::string HdrText(const LatencyCounts& counts);

/// Writes --latency_files: PREFIX, the position of the benchmark in the run from 1 on, its name,
/// and the kind of operation, as in "PREFIX2-ycsba-read.hgrm". `IOError` if a file cannot be
/// written.
Status WriteLatencyFiles(const std::string& prefix, const std::vector<BenchmarkResult>& results);

}  // namespace nacre::bench
