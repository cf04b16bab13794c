// Goal: db_bench runs RocksDB with its files in a pool through every benchmark, finds there what it
// finds in a folder, says in its head what it runs, and counts what crosses the network.
// Method: the tool runs as a process, with enough data for tables in several levels, over nodes in
// its own process.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/db_bench/tool_run.h"

namespace nacre::bench {
namespace {

constexpr const char* kBenchmarks =
    "fillseq,fillbatch,fillrandom,overwrite,readrandom,readmissing,multireadrandom,readseq,"
    "readreverse,seekrandom,readrandomwriterandom,deleterandom,flush,compact,waitforcompaction,"
    "readrandom,readseq,verifychecksum,stats,levelstats,space,seekrandomwhilewriting,"
    "readwhilewriting";

std::vector<std::string> Arguments(const std::string& benchmarks) {
  return {"--engine=rocksdb",
          "--num=20000",
          "--seed=3",
          "--write_buffer_size=262144",
          "--value_size=200",
          "--target_file_size_base=262144",
          "--seeks=500",
          "--seek_nexts=20",
          "--multiread_batch=16",
          "--multiread_batched",
          "--block_size=2048",
          "--max_bytes_for_level_base=1048576",
          "--benchmarks=" + benchmarks};
}

std::vector<std::string> InPool(std::vector<std::string> arguments, const std::string& pool) {
  arguments.push_back("--pool=" + pool);
  return arguments;
}

TEST(RemoteRocksdbTest, FindsWhatItFindsInAFolder) {
  const ToolRun folder = RunToolOk(Arguments(kBenchmarks));
  const ToolRun pool =
      RunToolOk(InPool(Arguments(kBenchmarks), "embedded:?nodes=3&size=256MiB&rtt_us=2"));
  ASSERT_EQ(pool.lines.size(), folder.lines.size()) << pool.output;
  for (size_t i = 0; i < pool.lines.size(); ++i) {
    EXPECT_EQ(pool.lines[i].name, folder.lines[i].name);
    // What readers find beside a writer, and what it leaves, depends on their speed.
    if (pool.lines[i].name.ends_with("whilewriting")) continue;
    EXPECT_EQ(pool.lines[i].note, folder.lines[i].note) << pool.lines[i].name;
  }
  EXPECT_NE(
      pool.output.find("profile remote, files in pool embedded:?nodes=3&size=256MiB&rtt_us=2, "
                       "redundancy none, blocks of 2048 B, block cache of 8388608 B\n"),
      std::string::npos)
      << pool.output;
}

TEST(RemoteRocksdbTest, CountsWhatCrossesTheNetwork) {
  const TemporaryPath file("remote.json");
  std::vector<std::string> arguments = Arguments("fillrandom,compact,readrandom,readseq");
  arguments.insert(arguments.end(),
                   {"--json=" + file.str(), "--redundancy=rep(2)", "--cache_size=0"});
  RunToolOk(InPool(std::move(arguments), "embedded:?nodes=3&size=256MiB"));
  const JsonValue report = ReadJson(file.str());
  const std::vector<JsonValue>& benchmarks = report["benchmarks"].array();
  ASSERT_EQ(benchmarks.size(), 4U);
  constexpr double kUserBytes = 20000 * 216;
  // The log, to both copies; keys are drawn, so all of it comes, whatever is overwritten.
  EXPECT_GT(benchmarks[0]["network"]["compute_written"].number(), 2 * kUserBytes);
  EXPECT_GT(benchmarks[1]["network"]["compute_read"].number(), kUserBytes / 2);
  EXPECT_GT(benchmarks[2]["network"]["compute_read"].number(), 2048 * 10000.0);
  // A note of RocksDB's about the compaction may come late.
  EXPECT_LT(benchmarks[2]["network"]["compute_written"].number(), 0.01 * kUserBytes);
  EXPECT_GT(benchmarks[3]["network"]["compute_read"].number(), kUserBytes / 2);
}

}  // namespace
}  // namespace nacre::bench
