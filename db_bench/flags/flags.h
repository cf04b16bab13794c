#pragma once

#include "db_bench/config.h"
#include "nacre/status.h"

namespace nacre::bench {

/// Reads the command line. `InvalidArgument` with a message of one line that names the flag and
/// what it may be; gflags itself ends the process, in the same manner and with exit code 1, for an
/// unknown flag or a value that is no number. `*help` is set, and nothing else, if help was asked
/// for.
///
/// Call once in a process.
Status ParseFlags(int argc, char** argv, BenchConfig* config, bool* help);

/// All flags and benchmarks, on standard output.
void PrintHelp();

}  // namespace nacre::bench
