#include "db_bench/benchmark_list.h"

namespace nacre::bench {
namespace {

constexpr BenchmarkSpec kBenchmarks[] = {
    {.name = "fillseq",
     .workload = FillSequential,
     .ops_per_thread = &BenchConfig::writes,
     .batch = &BenchConfig::batch_size,
     .fresh_db = true,
     .help = "write N values in the order of their keys into a new database"},
    {.name = "fillrandom",
     .workload = FillRandom,
     .ops_per_thread = &BenchConfig::writes,
     .timed = true,
     .batch = &BenchConfig::batch_size,
     .fresh_db = true,
     .help = "write N values in random order into a new database"},
    {.name = "fillbatch",
     .workload = FillBatch,
     .ops_per_thread = &BenchConfig::writes,
     .fixed_batch = kFillBatchEntries,
     .fresh_db = true,
     .help = "as fillseq, 1000 entries in each batch"},
    {.name = "overwrite",
     .workload = FillRandom,
     .ops_per_thread = &BenchConfig::writes,
     .timed = true,
     .batch = &BenchConfig::batch_size,
     .help = "write N values in random order"},
    {.name = "rawwrite",
     .workload = RawWrite,
     .ops_per_thread = &BenchConfig::writes,
     .timed = true,
     .help = "N times the one-sided write of what a Put sends to its log, to each copy (nacre)"},
    {.name = "readrandom",
     .workload = ReadRandom,
     .ops_per_thread = &BenchConfig::reads,
     .timed = true,
     .note = ResultNote::kFound,
     .help = "read N keys in random order"},
    {.name = "readmissing",
     .workload = ReadMissing,
     .ops_per_thread = &BenchConfig::reads,
     .timed = true,
     .note = ResultNote::kFound,
     .help = "read N keys that do not exist, in random order"},
    {.name = "multireadrandom",
     .workload = MultiReadRandom,
     .ops_per_thread = &BenchConfig::reads,
     .timed = true,
     .batch = &BenchConfig::multiread_batch,
     .note = ResultNote::kFound,
     .help = "read N keys in random order, --multiread_batch in each MultiGet"},
    {.name = "readseq",
     .workload = ReadSequential,
     .ops_per_thread = &BenchConfig::reads,
     .help = "read N entries from the first one on"},
    {.name = "readreverse",
     .workload = ReadReverse,
     .ops_per_thread = &BenchConfig::reads,
     .help = "read N entries from the last one back"},
    {.name = "seekrandom",
     .workload = SeekRandom,
     .ops_per_thread = &BenchConfig::seeks,
     .timed = true,
     .note = ResultNote::kFound,
     .help = "N times a new iterator, a random seek and --seek_nexts steps"},
    {.name = "seekrandomwhilewriting",
     .workload = SeekRandom,
     .ops_per_thread = &BenchConfig::seeks,
     .timed = true,
     .note = ResultNote::kFound,
     .background_writer = true,
     .help = "seekrandom, and one more thread that overwrites"},
    {.name = "readwhilewriting",
     .workload = ReadRandom,
     .ops_per_thread = &BenchConfig::reads,
     .timed = true,
     .note = ResultNote::kFound,
     .background_writer = true,
     .help = "readrandom, and one more thread that overwrites"},
    {.name = "readrandomwriterandom",
     .workload = ReadRandomWriteRandom,
     .ops_per_thread = &BenchConfig::readwrites,
     .timed = true,
     .note = ResultNote::kMixed,
     .help = "N operations, --readwritepercent of them reads"},
    {.name = "deleterandom",
     .workload = DeleteRandom,
     .ops_per_thread = &BenchConfig::deletes,
     .timed = true,
     .batch = &BenchConfig::batch_size,
     .help = "delete N keys in random order"},
    {.name = "flush", .meta = MetaOperation::kFlush, .help = "write out the MemTables"},
    {.name = "compact", .meta = MetaOperation::kCompact, .help = "compact the whole database"},
    {.name = "waitforcompaction",
     .meta = MetaOperation::kWaitForCompaction,
     .help = "wait until no flush and no compaction is due"},
    {.name = "waitforrepair",
     .meta = MetaOperation::kWaitForRepair,
     .help = "wait until what was lost with memory nodes is made anew"},
    {.name = "verifychecksum",
     .meta = MetaOperation::kVerifyChecksum,
     .help = "check all tables against their checksums"},
    {.name = "stats", .meta = MetaOperation::kStats, .help = "print the engine's statistics"},
    {.name = "levelstats",
     .meta = MetaOperation::kLevelStats,
     .help = "print tables and bytes of each level"},
    {.name = "space",
     .meta = MetaOperation::kSpace,
     .help = "print what the memory of the pool holds"},
    {.name = "kill", .meta = MetaOperation::kKill, .help = "kill the process --kill_pid"},
    {.name = "tail",
     .meta = MetaOperation::kTail,
     .help = "write --tail_bytes into a database that is flushed, and say that it is ready"},
    {.name = "awaitkill", .meta = MetaOperation::kAwaitKill, .help = "wait to be killed"},
    {.name = "takeover",
     .meta = MetaOperation::kTakeover,
     .help = "open a database whose owner was killed after tail, and check what it acknowledged"},
};

}  // namespace

const BenchmarkSpec* FindBenchmark(std::string_view name) {
  for (const BenchmarkSpec& spec : kBenchmarks) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

std::string BenchmarkHelp() {
  std::string text;
  for (const BenchmarkSpec& spec : kBenchmarks) {
    text.append("  ").append(spec.name);
    text.append(spec.name.size() < 24 ? 24 - spec.name.size() : 1, ' ');
    text.append(spec.help).push_back('\n');
  }
  return text;
}

}  // namespace nacre::bench
