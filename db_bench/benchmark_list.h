#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "db_bench/config.h"
#include "db_bench/workload.h"

namespace nacre::bench {

/// What the line of a benchmark says besides speed.
enum class ResultNote : uint8_t {
  kNone,
  kFound,         ///< "(N of M found)".
  kMixed,         ///< "( reads:N writes:N total:N found:N)".
  kTransactions,  ///< "( transactions:N aborts:N)".
};

/// What is done by one call instead of by threads.
enum class MetaOperation : uint8_t {
  kNone,
  kFlush,
  kCompact,
  kWaitForCompaction,
  kWaitForRepair,
  kVerifyChecksum,
  kCheckpoint,
  kRestore,
  kStats,
  kLevelStats,
  kSpace,
  kKill,
  kTail,
  kAwaitKill,
  kTakeover,
  kMoves,
  kSplits,
  kFailover,
};

/// One name that --benchmarks takes.
struct BenchmarkSpec {
  std::string_view name;
  Workload workload = nullptr;  ///< Null for a meta operation.
  MetaOperation meta = MetaOperation::kNone;
  uint64_t BenchConfig::*ops_per_thread = nullptr;
  bool timed = false;                      ///< --duration decides instead, if it is set.
  uint64_t fixed_batch = 0;                ///< Operations per call.
  uint64_t BenchConfig::*batch = nullptr;  ///< The flag of the operations per call.
  ResultNote note = ResultNote::kNone;
  bool fresh_db = false;
  bool keeps_many_in_flight = false;
  bool ycsb = false;        ///< It works on YCSB's records.
  bool shares_ops = false;  ///< `ops_per_thread` is what all threads do together.
  bool background_writer = false;
  bool needs_transactions = false;
  /// Looks at the database when all threads have ended. May be null.
  Status (*verify)(const BenchConfig& config, Session* session) = nullptr;
  bool of_members = false;  ///< It needs several members of a keyspace.
  std::string_view help;
};

/// Null if there is no such benchmark. The result lives for ever.
const BenchmarkSpec* FindBenchmark(std::string_view name);
/// "name: what it does" for each, a line each.
std::string BenchmarkHelp();

}  // namespace nacre::bench
