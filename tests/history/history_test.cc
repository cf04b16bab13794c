// Goal: whatever concurrent clients are answered, while nodes die and come back, can be explained
// by an order of their operations that respects time: each key is linearizable, and batches and
// reads of several keys are strictly serializable, which includes snapshot isolation. Method:
// clients put, delete and batch values that are never written twice, and read them by Get,
// MultiGet, snapshots and iterators. They write down when each call was made and when it returned;
// a write that failed may take effect at any later time. A checker that is not ours, porcupine,
// judges that (tests/history/checker).

#include "tests/support/history.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>

#include "memnode/pool_impl.h"
#include "nacre/db.h"
#include "tests/history/run_checker.h"
#include "tests/support/memnode_process.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "tests/support/test_nodes.h"
#include "util/random.h"

namespace nacre {
namespace {

struct Scenario {
  const char* name;
  const char* redundancy;
  /// Of 100 operations; few of them make long histories of single keys.
  uint64_t percent_of_many;
  uint64_t operations_in_group;

  friend std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
    return out << scenario.name;
  }
};

const Scenario kScenarios[] = {
    {"SingleKeysRep2", "rep(2)", 5, 10'000},
    {"SingleKeysRs21", "rs(2,1)", 5, 10'000},
    {"BatchesAndSnapshotsRep2", "rep(2)", 80, 1000},
    {"BatchesAndSnapshotsRs21", "rs(2,1)", 80, 1000},
};

class HistoryTest : public testing::TestWithParam<Scenario> {
 protected:
  /// Clients on a database whose tables lie on processes of their own.
  void Start() {
    nodes_ =
        std::make_unique<TestNodes>(NodeKind::kProcess, TestPoolOptions{.node_bytes = 64 << 20});
    ASSERT_NE(nodes_->pool(), nullptr);
    Options options = SmallTableOptions(nodes_->pool());
    options.redundancy = GetParam().redundancy;
    options.allow_degraded_writes = true;
    std::unique_ptr<DB> db;
    ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
    db_ = std::move(db);
    HistoryOptions history;
    history.percent_of_many = GetParam().percent_of_many;
    history.operations_in_group = GetParam().operations_in_group;
    history.write = NoLog();
    history.seed = random_.Next();
    run_ = std::make_unique<HistoryRun>(db_, history);
    run_->Start();
  }

  /// The node that the process is to the client now.
  NodeId NodeOf(size_t process) {
    memnode::PoolImpl* const pool = nodes_->pool().get();
    for (int i = pool->node_count(); i-- > 0;) {
      const auto node = static_cast<NodeId>(i);
      if (pool->client()->alive(node) &&
          pool->client()->node_address(node) == (*nodes_->processes())[process].address()) {
        return node;
      }
    }
    return kNoNode;
  }

  /// Until every table is whole. One that was just made may show up a moment later.
  void AwaitRepair() {
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(
          Eventually([&] { return GetNumber(db_.get(), "nacre.repair.tables-left") == 0; }));
      ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(500)));
    }
  }

  /// The clients stop, read all there is, and the checker judges what they have seen.
  void StopAndCheck() {
    run_->Stop();
    run_->ReadAll();
    const HistoryCounts counts = run_->counts();
    EXPECT_GT(counts.operations, 0u);
    const std::string path = folder_.File("history");
    ASSERT_NO_FATAL_FAILURE(WriteHistories(run_->histories(), path));
    std::cout << counts.operations << " operations, " << counts.unknown_writes
              << " writes unknown, " << counts.failed_reads << " reads failed, "
              << GetNumber(db_.get(), "nacre.num-live-tables") << " tables\n";
    for (const char* by : {"keys", "groups"}) {
      const ProcessResult result = RunChecker(by, path);
      EXPECT_EQ(result.exit_code, kExplained) << result.output;
      std::cout << result.output;
    }
    if (HasFailure()) Keep(path);
  }

  const TempFolder folder_;
  Random random_{TestSeed(601)};
  std::unique_ptr<TestNodes> nodes_;
  std::shared_ptr<DB> db_;
  std::unique_ptr<HistoryRun> run_;

 private:
  /// What was refused is worth a look.
  static void Keep(const std::string& path) {
    const std::filesystem::path kept =
        std::filesystem::temp_directory_path() / (std::string("nacre-history-") + GetParam().name);
    for (const char* suffix : {"", ".html"}) {
      std::error_code missing;
      std::filesystem::copy_file(path + suffix, kept.string() + suffix,
                                 std::filesystem::copy_options::overwrite_existing, missing);
    }
    std::cout << "kept as " << kept << '\n';
  }
};

INSTANTIATE_TEST_SUITE_P(Clients, HistoryTest, testing::ValuesIn(kScenarios),
                         [](const auto& scenario) { return std::string(scenario.param.name); });

TEST_P(HistoryTest, Quiet) {
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(10'000)));
  ASSERT_NO_FATAL_FAILURE(StopAndCheck());
}

TEST_P(HistoryTest, NodesAreKilledAndComeBack) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (int round = 0; round < 3 && !HasFailure(); ++round) {
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(3000)));
    const size_t victim = random_.Uniform(nodes_->processes()->size());
    const NodeId node = NodeOf(victim);
    ASSERT_NE(node, kNoNode);
    (*nodes_->processes())[victim].Kill();
    ASSERT_TRUE(Eventually([&] { return !nodes_->pool()->client()->alive(node); }));
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(3000)));
    (*nodes_->processes())[victim].Start();
    ASSERT_TRUE(Eventually([&] { return NodeOf(victim) != kNoNode; }));
    // The redundancy takes the loss of one node at a time.
    ASSERT_NO_FATAL_FAILURE(AwaitRepair());
  }
  ASSERT_NO_FATAL_FAILURE(StopAndCheck());
}

}  // namespace
}  // namespace nacre
