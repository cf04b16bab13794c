// Goal: whatever step of its work a memory node dies at, the owner of a database that may lose one
// goes on: no write fails, nothing is lost, and it gets its redundancy back.
// Method: one of four nodes is a process that kills itself at a point (util/named_point.h), for
// each point and each time that a whole run reaches it, while an owner in this process writes,
// flushes, compacts, closes, opens again and destroys a database. One crash alone is replayed by
// NACRE_CRASH_AT=POINT:HIT.

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ctl/fsck.h"
#include "tests/support/process/crash_points.h"
#include "tests/support/process/crash_workload.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/served_nodes.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

constexpr uint64_t kNodeBytes = 64 << 20;
constexpr uint64_t kSlabBytes = 1 << 20;
constexpr size_t kNodeShards = 2;
constexpr uint64_t kWrites = 60;

struct NodeCase {
  const char* name;
  const char* redundancy;
  size_t shard;
};

class NodeCrash : public testing::Test {
 protected:
  NodeCrash() : others_(3, kNodeBytes, kSlabBytes) {
    // The first node of a pool has a copy of a new manifest.
    pool_uri_ = PoolUriOf({"shm:" + folder_.File("node"), others_.address(0), others_.address(1),
                           others_.address(2)});
  }

  void StartVictim() {
    if (victim_ != nullptr) victim_->Kill();
    victim_ = std::make_unique<ChildProcess>(
        "crash_tests", std::vector<std::string>{"--gtest_filter=CrashNodeChild.Run"},
        std::vector<std::string>{"NACRE_CRASH_POINTS=" + points_.path(),
                                 "NACRE_CRASH_NODE=shm:" + folder_.File("node")});
    const std::string output = victim_->AwaitOutput("ready", 60);
    ASSERT_NE(output.find("ready"), std::string::npos) << output;
  }

  void Open(std::unique_ptr<DB>* db) { ASSERT_TRUE(IsOk(DB::Open(options_, kCrashDatabase, db))); }

  /// One life of a database, while the node dies at `at`.
  void RunOne(const CrashAt& at) {
    points_.Aim({});
    ASSERT_NO_FATAL_FAILURE(StartVictim());
    points_.Aim(at);
    options_ = CrashOptions(pool_uri_, redundancy_);
    options_.disable_auto_compactions = false;  // Some of their jobs come to this node.
    std::unique_ptr<DB> db;
    ASSERT_NO_FATAL_FAILURE(Open(&db));
    for (uint64_t number = 1; number <= kWrites; ++number) {
      ASSERT_TRUE(IsOk(WriteOne(db.get(), seed_, number))) << number;
      if (number == kWrites * 3 / 4) {
        ASSERT_TRUE(IsOk(db->Flush({})));
        ASSERT_TRUE(IsOk(db->CompactRange({}, nullptr, nullptr)));
      }
    }
    const CrashModel model = ModelOf(seed_, kWrites);
    ASSERT_TRUE(Contents(db.get()) == model);
    ASSERT_TRUE(IsOk(db->VerifyChecksum()));  // Each node has a part in it.
    ASSERT_NO_FATAL_FAILURE(AwaitSpare());
    ASSERT_TRUE(IsOk(db->Close()));
    ASSERT_NO_FATAL_FAILURE(Open(&db));
    ASSERT_TRUE(Contents(db.get()) == model);
    ASSERT_NO_FATAL_FAILURE(AwaitSpare());
    ASSERT_TRUE(IsOk(db->Close()));
    db.reset();
    ASSERT_TRUE(IsOk(DestroyDB(kCrashDatabase, options_)));
    ASSERT_EQ(others_.leased_slabs(), 0u);
  }

  /// Waits until one more node may be lost.
  void AwaitSpare() {
    const std::shared_ptr<pool::PoolImpl> pool = ConnectTestPool(pool_uri_);
    ctl::FsckReport report;
    const bool whole = Eventually([&] {
      report = ctl::Fsck(pool->client(), {.database = kCrashDatabase, .full = true});
      return report.databases.size() == 1 && report.databases[0].spare_nodes == 1;
    });
    for (const ctl::Finding& finding : report.findings) {
      // That it does not answer, and all that follows from it, is no news.
      EXPECT_TRUE(whole && finding.problem == ctl::Problem::kNode) << ToString(finding);
    }
    for (const Status& failure : report.failures) ADD_FAILURE() << failure.ToString();
    ASSERT_TRUE(whole);
  }

  const uint64_t seed_ = TestSeed(909);
  const TempFolder folder_;
  CrashPoints points_;
  ServedNodes others_;
  std::unique_ptr<ChildProcess> victim_;
  std::string pool_uri_;
  std::string redundancy_ = "rep(2)";
  Options options_;
};

TEST_F(NodeCrash, ReachesEveryPoint) {
  ASSERT_NO_FATAL_FAILURE(RunOne({}));
  const std::map<std::string, uint64_t> hits = points_.Hits();
  for (const NamedPoint* point : AllPoints()) {
    if (!IsOfNode(*point)) continue;  // See owner_crash_test.cc.
    EXPECT_GT(hits.at(point->name), 0u)
        << point->name << " (" << point->file << ":" << point->line << ") is not reached";
  }
}

class NodeCrashTest : public NodeCrash, public testing::WithParamInterface<NodeCase> {};

TEST_P(NodeCrashTest, AtEachPoint) {
  redundancy_ = GetParam().redundancy;
  RunWithEachCrash(points_, GetParam().shard, kNodeShards,
                   [this](const CrashAt& at) { RunOne(at); });
}

std::vector<NodeCase> AllNodeCases() {
  std::vector<NodeCase> cases;
  for (size_t shard = 0; shard < kNodeShards; ++shard) {
    cases.push_back({"Rep2", "rep(2)", shard});
    cases.push_back({"Rs21", "rs(2,1)", shard});
  }
  return cases;
}

std::string NameOfNodeCase(const testing::TestParamInfo<NodeCase>& tested) {
  return std::string(tested.param.name) + "Part" + std::to_string(tested.param.shard);
}

INSTANTIATE_TEST_SUITE_P(Nodes, NodeCrashTest, testing::ValuesIn(AllNodeCases()), NameOfNodeCase);

/// The process that is the node.
TEST(CrashNodeChild, Run) {
  const char* const listen = std::getenv("NACRE_CRASH_NODE");
  if (listen == nullptr) GTEST_SKIP() << "started by others";
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  CrashPoints points(std::getenv("NACRE_CRASH_POINTS"));
  points.Install();
  std::unique_ptr<rdma::Device> device;
  ASSERT_TRUE(IsOk(rdma::OpenDevice("shm", {}, Clock::System(), &device)));
  pool::MemoryNodeOptions options;
  options.listen = listen;
  options.region_bytes = kNodeBytes;
  options.slab_bytes = kSlabBytes;
  std::unique_ptr<pool::MemoryNode> node;
  ASSERT_TRUE(IsOk(pool::MemoryNode::Start(options, device.get(), Clock::System(), &node)));
  std::cout << "ready" << std::endl;
  for (;;) ::pause();
}

}  // namespace
}  // namespace nacre
