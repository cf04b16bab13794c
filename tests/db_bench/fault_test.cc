// Goal: db_bench shows a run over time, and what a node's death in the middle of it does.
// Method: the tool runs as a process with small numbers over nacre-memnode processes.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/db_bench/tool_run.h"

namespace nacre::bench {
namespace {

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(ReportFileTest, HasALineForEachInterval) {
  const TemporaryPath file("report.csv");
  RunToolOk({"--num=1000", "--seed=3", "--threads=2", "--duration=1", "--report_file=" + file.str(),
             "--report_interval_seconds=0.1", "--latency_sample_period=1",
             "--benchmarks=fillseq,readrandom"});
  const std::vector<std::string> lines = LinesOf(file.str());
  ASSERT_GE(lines.size(), 3u);
  EXPECT_EQ(lines[0], "secs_elapsed,interval_qps,p50_us,p99_us,max_us,repaired_bytes,benchmark");
  static const std::regex kLine(
      R"((\d+\.\d{3}),(\d+),(\d+\.\d\d),(\d+\.\d\d),(\d+\.\d\d),0,(fillseq|readrandom))");
  double before = 0;
  double reads = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    std::smatch match;
    ASSERT_TRUE(std::regex_match(lines[i], match, kLine)) << lines[i];
    const double elapsed = std::stod(match[1]);
    EXPECT_GE(elapsed, before) << lines[i];
    EXPECT_LE(std::stod(match[3]), std::stod(match[4])) << lines[i];
    EXPECT_LE(std::stod(match[4]), std::stod(match[5])) << lines[i];
    if (match[6] == "readrandom") reads += std::stod(match[2]) * (elapsed - before);
    before = elapsed;
  }
  EXPECT_GT(reads, 0);
}

TEST(ReportFileTest, ThatCannotBeWrittenIsNamed) {
  const ToolRun run = RunTool({"--num=10", "--benchmarks=fillseq", "--report_file=/no/such/file"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_NE(run.output.find("/no/such/file"), std::string::npos) << run.output;
}

class KillTest : public testing::Test {
 protected:
  KillTest() : nodes_(4, {.size = "256MiB", .slab_size = "64MiB"}) {}
  std::string Pool() { return "--pool=" + nodes_.pool_uri(); }
  std::string Victim() { return "--kill_pid=" + std::to_string(nodes_[1].pid()); }

  MemnodeProcesses nodes_;
};

TEST_F(KillTest, BetweenBenchmarks) {
  const ToolRun run = RunToolOk({Pool(), Victim(), "--redundancy=rs(2,1)", "--num=2000", "--seed=3",
                                 "--benchmarks=fillseq,flush,kill,readrandom"});
  ASSERT_EQ(run.lines.size(), 4u) << run.output;
  EXPECT_EQ(run.lines[3].note, "(2000 of 2000 found)");
}

TEST_F(KillTest, WhileABenchmarkRuns) {
  const ToolRun run =
      RunToolOk({Pool(), Victim(), "--redundancy=rs(2,1)", "--num=2000", "--seed=3",
                 "--kill_at_seconds=0.5", "--duration=1", "--benchmarks=fillseq,flush,readrandom"});
  EXPECT_NE(run.output.find(": OK"), std::string::npos) << run.output;
  ASSERT_EQ(run.lines.size(), 3u) << run.output;
  const std::string ops = std::to_string(run.lines[2].ops);
  EXPECT_EQ(run.lines[2].note, "(" + ops + " of " + ops + " found)");
}

TEST(KillOnlyNodeTest, LosesWhatHadNoRedundancy) {
  // One of several nodes might have no table when it dies.
  MemnodeProcesses nodes(1, {.size = "256MiB", .slab_size = "64MiB"});
  // Memory that is mapped outlives its process: reads go on until the death is noticed, and end
  // long before the duration does.
  const ToolRun run =
      RunTool({"--pool=" + nodes.pool_uri(), "--kill_pid=" + std::to_string(nodes[0].pid()),
               "--num=2000", "--value_size=4000", "--seed=3", "--write_buffer_size=1048576",
               "--duration=120", "--benchmarks=fillseq,flush,kill,readrandom"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_NE(run.output.find("Unavailable"), std::string::npos) << run.output;
}

TEST(KillFlagsTest, SayWhatIsMissing) {
  const ToolRun run = RunTool({"--num=10", "--benchmarks=fillseq,kill"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_NE(run.output.find("--kill_pid"), std::string::npos) << run.output;
  const ToolRun timed = RunTool({"--num=10", "--kill_at_seconds=1", "--benchmarks=fillseq"});
  EXPECT_NE(timed.exit_code, 0);
  EXPECT_NE(timed.output.find("--kill_pid"), std::string::npos) << timed.output;
  const ToolRun untimed =
      RunTool({"--num=10", "--kill_at_seconds=1", "--kill_pid=1", "--benchmarks=fillseq"});
  EXPECT_NE(untimed.exit_code, 0);
  EXPECT_NE(untimed.output.find("--duration"), std::string::npos) << untimed.output;
}

}  // namespace
}  // namespace nacre::bench
