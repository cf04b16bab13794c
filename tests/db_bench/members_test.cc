// Goal: db_bench measures a keyspace whose shards belong to several processes, which it starts and
// which end with it.
// Method: the tool runs as a process with small numbers, over nacre-memnode processes and an etcd.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/db_bench/tool_run.h"
#include "tests/support/process/etcd_process.h"

namespace nacre::bench {
namespace {

class MembersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
    const ToolRun run = RunTool({"--coordinator=etcd:127.0.0.1:1", "--sharded=2", "--num=10",
                                 "--pool=shm:/no/such/socket", "--benchmarks=readrandom"});
    if (run.output.find("built without etcd") != std::string::npos) {
      GTEST_SKIP() << "db_bench is built without etcd";
    }
    etcd_ = std::make_unique<EtcdProcess>();
    nodes_ = std::make_unique<MemnodeProcesses>(
        2, MemnodeProcessOptions{.size = "1GiB", .slab_size = "64MiB"});
  }

  ToolRun Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(),
                     {"--pool=" + nodes_->pool_uri(), "--coordinator=etcd:" + etcd_->endpoint(),
                      "--sharded=4", "--num=2000", "--seed=3", "--write_buffer_size=1048576"});
    return RunToolOk(arguments);
  }

  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<MemnodeProcesses> nodes_;
};

void ExpectText(const ToolRun& run, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    EXPECT_NE(run.output.find(text), std::string::npos) << text << "\n" << run.output;
  }
}

TEST_F(MembersTest, ShardsMoveAndFailOver) {
  const TemporaryPath json("report.json");
  const ToolRun run =
      Run({"--members=2", "--threads=2", "--moves=6", "--json=" + json.str(),
           "--benchmarks=fillseq,readrandom,moves,failover,readrandom,fillseq,readrandom"});
  ASSERT_EQ(run.lines.size(), 7u) << run.output;
  for (const size_t read : {1, 4, 6}) EXPECT_EQ(run.lines[read].note, "(4000 of 4000 found)");
  ExpectText(run, {"2 members (shm:@, shm:@)", "longest operation in a move:", ", of 6\n",
                   "first Get of a shard:", ", of 2\n"});
  const JsonValue report = ReadJson(json.str());
  const JsonValue& moves = report["benchmarks"].array()[2]["members"];
  EXPECT_EQ(moves["move"]["count"].number(), 6);
  EXPECT_GT(moves["longest_operation"]["p50_us"].number(), 0);
  EXPECT_GE(moves["longest_operation"]["max_us"].number(),
            moves["longest_operation"]["p99_us"].number());
  EXPECT_EQ(report["benchmarks"].array()[3]["members"]["failover"]["count"].number(), 2);
}

TEST_F(MembersTest, ShardsAreSplitAndMerged) {
  const ToolRun run =
      Run({"--members=2", "--threads=2", "--moves=4", "--benchmarks=fillseq,splits,readrandom"});
  ASSERT_EQ(run.lines.size(), 3u) << run.output;
  EXPECT_EQ(run.lines[2].note, "(4000 of 4000 found)");
  ExpectText(run, {"longest operation in a split:", "a split:", ", of 4\n"});
}

TEST_F(MembersTest, AProcessMayOwnNoShards) {
  const ToolRun run =
      Run({"--members=1", "--member_address=none", "--other_member_address=tcp:127.0.0.1:0",
           "--benchmarks=fillseq,readrandom,readseq"});
  ASSERT_EQ(run.lines.size(), 3u) << run.output;
  EXPECT_EQ(run.lines[1].note, "(2000 of 2000 found)");
  ExpectText(run, {"1 members (not this process, tcp:127.0.0.1:0)"});
}

TEST_F(MembersTest, TheKeyspaceStays) {
  Run({"--members=2", "--benchmarks=fillseq"});
  const ToolRun run = Run({"--members=3", "--use_existing_db", "--benchmarks=readrandom,failover"});
  ASSERT_EQ(run.lines.size(), 2u) << run.output;
  EXPECT_EQ(run.lines[0].note, "(2000 of 2000 found)");
}

TEST(MemberFlagsTest, SayWhatIsMissing) {
  const std::string etcd = "--coordinator=etcd:127.0.0.1:1";
  const std::string pool = "--pool=shm:/no/such/socket";
  const struct {
    std::vector<std::string> arguments;
    std::string culprit;
  } cases[] = {
      {{etcd, pool}, "--coordinator needs --sharded"},
      {{etcd, "--sharded=2"}, "--coordinator needs --pool"},
      {{"--members=2", "--sharded=2"}, "--members needs --coordinator"},
      {{"--member_address=shm:@", "--sharded=2"}, "--member_address needs --coordinator"},
      {{etcd, pool, "--sharded=2", "--members=0"}, "--members=0"},
      {{etcd, pool, "--sharded=2", "--moves=0"}, "--moves=0"},
      {{etcd, pool, "--sharded=2", "--member_address=here"}, "--member_address=here"},
      {{etcd, pool, "--sharded=2", "--benchmarks=moves"}, "moves needs two members"},
      {{"--sharded=2", "--benchmarks=failover"}, "failover needs --coordinator"},
  };
  for (const auto& mistake : cases) {
    std::vector<std::string> arguments = {"--num=10", "--benchmarks=fillseq"};
    arguments.insert(arguments.end(), mistake.arguments.begin(), mistake.arguments.end());
    const ToolRun run = RunTool(arguments);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_NE(run.output.find(mistake.culprit), std::string::npos) << run.output;
  }
}

}  // namespace
}  // namespace nacre::bench
