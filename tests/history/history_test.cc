// Goal: whatever concurrent clients are answered, while nodes die and come back, or pause and go
// on, and one owner takes the database over from the other, can be explained by an order of their
// operations that respects time: each key is linearizable, and batches and reads of several keys
// are strictly serializable, which includes snapshot isolation. So are the reads of followers that
// ask for what is acknowledged, together with the writes. Method: clients put, delete and batch
// values that are never written twice, and read them by Get, MultiGet, snapshots and iterators.
// They write down when each call was made and when it returned; a write that failed may take effect
// at any later time. A checker that is not ours, porcupine, judges that (tests/history/checker).

#include "tests/support/model/history.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "nacre/db.h"
#include "pool/pool_impl.h"
#include "tests/history/run_checker.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

struct Scenario {
  const char* name;
  const char* redundancy;
  /// How many of 100 operations are on several keys; few of them make long histories of single
  /// keys.
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
  /// Clients on a database whose tables lie on processes of their own. Pauses bound how long a
  /// history gets where the test waits for something other than operations.
  void Start(int readers = 0, int followers = 0,
             std::chrono::microseconds longest_pause = HistoryOptions().longest_pause,
             const char* scheme = "shm") {
    nodes_ = std::make_unique<MemnodeProcesses>(4, MemnodeProcessOptions{.scheme = scheme});
    ASSERT_NO_FATAL_FAILURE(Open());
    std::vector<std::shared_ptr<DB>> following;
    for (int i = 0; i < followers; ++i) {
      std::unique_ptr<DB> follower;
      ASSERT_TRUE(IsOk(DB::OpenAsSecondary(SmallTableOptions(ConnectTestPool(nodes_->pool_uri())),
                                           "db", &follower)));
      following.push_back(std::move(follower));
    }
    HistoryOptions history;
    history.percent_of_many = GetParam().percent_of_many;
    history.operations_in_group = GetParam().operations_in_group;
    history.readers = readers;
    history.followers = followers;
    history.longest_pause = longest_pause;
    history.clients += followers;
    history.seed = random_.Next();
    run_ = std::make_unique<HistoryRun>(db_, history, following);
    run_->Start();
  }

  /// As an owner of its own, which knows nothing of the one before.
  void Open() {
    std::shared_ptr<pool::PoolImpl> pool = ConnectTestPool(nodes_->pool_uri());
    ASSERT_NE(pool, nullptr);
    Options options = SmallTableOptions(pool);
    options.redundancy = GetParam().redundancy;
    options.allow_degraded_writes = true;
    options.take_over = true;
    std::unique_ptr<DB> db;
    ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
    db_ = std::move(db);
    pool_ = std::move(pool);
  }

  /// The clients go on with the next owner; some of them learn of it from the old one.
  void TakeOver() {
    ASSERT_NO_FATAL_FAILURE(Open());
    if (random_.OneIn(2)) {
      ASSERT_NO_FATAL_FAILURE(run_->AwaitAllFenced());
    }
    run_->SetDB(db_);
  }

  /// The node that the process is to the client now.
  NodeId NodeOf(size_t process) {
    for (int i = pool_->node_count(); i-- > 0;) {
      const auto node = static_cast<NodeId>(i);
      if (pool_->client()->alive(node) &&
          pool_->client()->node_address(node) == (*nodes_)[process].address()) {
        return node;
      }
    }
    return kNoNode;
  }

  /// Kills the node, and waits until the owner has noticed.
  void Kill(size_t victim) {
    const NodeId node = NodeOf(victim);
    ASSERT_NE(node, kNoNode);
    (*nodes_)[victim].Kill();
    ASSERT_TRUE(Eventually([&] { return !pool_->client()->alive(node); }));
  }

  /// Empty, as a node that joins.
  void StartAgain(size_t victim) {
    (*nodes_)[victim].Start();
    ASSERT_TRUE(Eventually([&] { return NodeOf(victim) != kNoNode; }));
  }

  /// Waits until every table is whole, and no log has records that lack a replica. A table that was
  /// just made may show up a moment later.
  void AwaitRepair() {
    ASSERT_TRUE(IsOk(db_->Flush({})));
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
  std::unique_ptr<MemnodeProcesses> nodes_;
  /// The pool of the newest owner.
  std::shared_ptr<pool::PoolImpl> pool_;
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
    const size_t victim = random_.Uniform(nodes_->size());
    ASSERT_NO_FATAL_FAILURE(Kill(victim));
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(3000)));
    ASSERT_NO_FATAL_FAILURE(StartAgain(victim));
    // The redundancy takes the loss of one node at a time.
    ASSERT_NO_FATAL_FAILURE(AwaitRepair());
  }
  ASSERT_NO_FATAL_FAILURE(StopAndCheck());
}

TEST_P(HistoryTest, OwnersTakeOver) {
  ASSERT_NO_FATAL_FAILURE(Start(/*readers=*/2));
  for (int round = 0; round < 5 && !HasFailure(); ++round) {
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(500 + random_.Uniform(2000))));
    ASSERT_NO_FATAL_FAILURE(TakeOver());
  }
  ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(1000)));
  ASSERT_NO_FATAL_FAILURE(StopAndCheck());
  // Readers find out by being refused.
  EXPECT_GT(run_->counts().failed_reads, 0u);
}

TEST_P(HistoryTest, OwnersTakeOverWhileNodesAreKilled) {
  ASSERT_NO_FATAL_FAILURE(Start(/*readers=*/2));
  for (int round = 0; round < 3 && !HasFailure(); ++round) {
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(500 + random_.Uniform(1500))));
    const size_t victim = random_.Uniform(nodes_->size());
    if (random_.OneIn(2)) {
      (*nodes_)[victim].Kill();  // The owners may notice this or that first.
      ASSERT_NO_FATAL_FAILURE(TakeOver());
    } else {
      const std::chrono::milliseconds pause(random_.Uniform(1500));
      std::thread killer([this, victim, pause] {
        std::this_thread::sleep_for(pause);
        (*nodes_)[victim].Kill();
      });
      TakeOver();
      killer.join();
      if (HasFailure()) break;
    }
    // The next owner finds an empty node in the lost one's place, or none.
    if (random_.OneIn(2)) (*nodes_)[victim].Start();
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(random_.Uniform(500))));
    ASSERT_NO_FATAL_FAILURE(TakeOver());
    if (!(*nodes_)[victim].running()) (*nodes_)[victim].Start();
    ASSERT_TRUE(Eventually([&] { return NodeOf(victim) != kNoNode; }));
    ASSERT_NO_FATAL_FAILURE(AwaitRepair());
  }
  ASSERT_NO_FATAL_FAILURE(StopAndCheck());
}

// Over tcp all that is sent to a node waits while its process is stopped.
TEST_P(HistoryTest, NodesPauseAndGoOn) {
  ASSERT_NO_FATAL_FAILURE(
      Start(/*readers=*/2, /*followers=*/0, std::chrono::milliseconds(10), "tcp"));
  for (int round = 0; round < 2 && !HasFailure(); ++round) {
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(500)));
    const size_t victim = random_.Uniform(nodes_->size());
    (*nodes_)[victim].Pause();
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(300 + random_.Uniform(1500))));
    // Owners that are replaced have writes there, which wait with the others.
    if (random_.OneIn(2)) {
      ASSERT_NO_FATAL_FAILURE(TakeOver());
      ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(200)));
    }
    (*nodes_)[victim].Resume();
    ASSERT_TRUE(Eventually([&] {
      const NodeId node = NodeOf(victim);
      return node != kNoNode && pool_->client()->prompt(node);
    }));
    // The redundancy takes the loss of one node at a time, and an opening does without those that
    // are silent.
    ASSERT_NO_FATAL_FAILURE(AwaitRepair());
  }
  ASSERT_NO_FATAL_FAILURE(StopAndCheck());
}

TEST_P(HistoryTest, FollowersReadWhileNodesPause) {
  ASSERT_NO_FATAL_FAILURE(
      Start(/*readers=*/0, /*followers=*/3, std::chrono::milliseconds(5), "tcp"));
  for (int round = 0; round < 2 && !HasFailure(); ++round) {
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(500)));
    const size_t victim = random_.Uniform(nodes_->size());
    (*nodes_)[victim].Pause();
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(200 + random_.Uniform(500))));
    (*nodes_)[victim].Resume();
    ASSERT_TRUE(Eventually([&] { return pool_->client()->prompt(NodeOf(victim)); }));
    ASSERT_NO_FATAL_FAILURE(AwaitRepair());
  }
  ASSERT_NO_FATAL_FAILURE(StopAndCheck());
}

TEST_P(HistoryTest, FollowersRead) {
  ASSERT_NO_FATAL_FAILURE(Start(/*readers=*/0, /*followers=*/4));
  ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(10'000)));
  ASSERT_NO_FATAL_FAILURE(StopAndCheck());
}

TEST_P(HistoryTest, FollowersReadWhileOwnersTakeOverAndNodesAreKilled) {
  ASSERT_NO_FATAL_FAILURE(Start(/*readers=*/0, /*followers=*/3, std::chrono::milliseconds(10)));
  for (int round = 0; round < 3 && !HasFailure(); ++round) {
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(500 + random_.Uniform(1500))));
    const size_t victim = random_.Uniform(nodes_->size());
    if (random_.OneIn(2)) {
      // The moments differ: what was in flight then may be seen, and lost (docs/durability.md,
      // section 11).
      ASSERT_NO_FATAL_FAILURE(Kill(victim));
      ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(200)));
    }
    ASSERT_NO_FATAL_FAILURE(TakeOver());
    ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(500)));
    if (!(*nodes_)[victim].running()) (*nodes_)[victim].Start();
    ASSERT_TRUE(Eventually([&] { return NodeOf(victim) != kNoNode; }));
    ASSERT_NO_FATAL_FAILURE(AwaitRepair());
  }
  ASSERT_NO_FATAL_FAILURE(StopAndCheck());
}

}  // namespace
}  // namespace nacre
