// Goal: nothing that was acknowledged is lost when the process that owns a database is killed, or
// stopped and replaced, at any moment, with as many nodes as the redundancy allows; and an owner
// that was replaced learns that and changes nothing any more.
// Method: nacre-memnode processes and an owner process that writes with several threads; kill -9 of
// the owner, of nodes beside it, one after the other; SIGSTOP and SIGCONT. What each thread had
// acknowledged is compared with what the next owner finds.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/owner_process.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

OWNER_PROCESS_CHILD()

namespace nacre {
namespace {

class TakeoverTest : public testing::Test {
 protected:
  void StartNodes(int count, const std::string& scheme = "shm") {
    nodes_ = std::make_unique<MemnodeProcesses>(
        count, MemnodeProcessOptions{.scheme = scheme, .size = "256MiB", .slab_size = "1MiB"});
  }
  OwnerPlan Plan(const std::string& redundancy, bool degraded_writes = false) {
    return {.pool_uri = nodes_->pool_uri(),
            .redundancy = redundancy,
            .seed = random_.Next() % 1'000'000,
            .allow_degraded_writes = degraded_writes};
  }
  Options OptionsFor(const OwnerPlan& plan) const {
    Options options = SmallTableOptions(nullptr);
    options.pool_uri = plan.pool_uri;
    options.redundancy = plan.redundancy;
    options.allow_degraded_writes = plan.allow_degraded_writes;
    options.create_if_missing = false;
    return options;
  }
  /// Opens it as the next owner. The nodes may be about to notice that the last one is gone.
  void Open(const Options& options, std::unique_ptr<DB>* db) {
    const auto start = std::chrono::steady_clock::now();
    Status status;
    do {
      status = DB::Open(options, "db", db);
      if (!status.IsBusy()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
    ASSERT_TRUE(IsOk(status));
  }

  Random random_{TestSeed(606)};
  std::unique_ptr<MemnodeProcesses> nodes_;
};

TEST_F(TakeoverTest, AnOwnerKilledAtAnyMoment) {
  StartNodes(3);
  for (size_t round = 0; round < Scaled(8); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    OwnerPlan plan = Plan(round % 2 == 0 ? "rep(2)" : "rs(2,1)");
    plan.database = "db" + std::to_string(round);
    OwnerProcess owner("db_tests", plan);
    ASSERT_TRUE(owner.AwaitProgress(1 + random_.Uniform(3000)));
    owner.Kill();
    Options options = OptionsFor(plan);
    std::unique_ptr<DB> db;
    Status status;
    ASSERT_TRUE(Eventually([&] {
      status = DB::Open(options, plan.database, &db);
      return !status.IsBusy();
    }));
    ASSERT_TRUE(IsOk(status));
    owner.Check(db.get());
    ASSERT_TRUE(IsOk(db->Put({}, "k", "v")));
    ASSERT_TRUE(IsOk(db->Close()));
    db.reset();
    // What was replayed is in tables now.
    ASSERT_TRUE(IsOk(DB::Open(options, plan.database, &db)));
    owner.Check(db.get());
    std::string value;
    ASSERT_TRUE(IsOk(db->Get({}, "k", &value)));
    ASSERT_TRUE(IsOk(db->Close()));
    db.reset();
    ASSERT_TRUE(IsOk(DestroyDB(plan.database, options)));
  }
}

TEST_F(TakeoverTest, OwnersKilledOneAfterTheOther) {
  StartNodes(3);
  std::vector<std::unique_ptr<OwnerProcess>> owners;
  OwnerPlan plan = Plan("rep(2)");
  plan.keys_per_thread = 100;
  for (size_t round = 0; round < Scaled(10); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    plan.prefix = "r" + std::to_string(round);
    ++plan.seed;
    owners.push_back(std::make_unique<OwnerProcess>("db_tests", plan));
    ASSERT_TRUE(owners.back()->AwaitProgress(random_.Uniform(300) + 1));
    owners.back()->Kill();
    if (random_.OneIn(2)) continue;  // The next owner is the first to see what is left.
    std::unique_ptr<DB> db;
    ASSERT_NO_FATAL_FAILURE(Open(OptionsFor(plan), &db));
    for (const auto& owner : owners) owner->Check(db.get());
    ASSERT_TRUE(IsOk(db->Close()));
  }
  std::unique_ptr<DB> db;
  ASSERT_NO_FATAL_FAILURE(Open(OptionsFor(plan), &db));
  for (const auto& owner : owners) owner->Check(db.get());
}

TEST_F(TakeoverTest, NodesKilledWithTheOwner) {
  struct Case {
    const char* redundancy;
    int nodes;
    int lost;
  };
  for (const Case& c : {Case{"rep(2)", 4, 1}, Case{"rs(2,1)", 4, 1}, Case{"rs(4,2)", 8, 2}}) {
    SCOPED_TRACE(c.redundancy);
    StartNodes(c.nodes);
    const OwnerPlan plan = Plan(c.redundancy);
    OwnerProcess owner("db_tests", plan);
    ASSERT_TRUE(owner.AwaitProgress(500 + random_.Uniform(1500)));
    std::vector<size_t> victims;
    while (victims.size() < static_cast<size_t>(c.lost)) {
      const size_t victim = random_.Uniform(static_cast<uint64_t>(c.nodes));
      if (std::find(victims.begin(), victims.end(), victim) == victims.end()) {
        victims.push_back(victim);
      }
    }
    for (const size_t victim : victims) (*nodes_)[victim].Kill();
    owner.Kill();
    std::unique_ptr<DB> db;
    ASSERT_NO_FATAL_FAILURE(Open(OptionsFor(plan), &db));
    owner.Check(db.get());
    ASSERT_TRUE(IsOk(db->Put({}, "k", "v")));
    EXPECT_TRUE(IsOk(db->Close()));
  }
}

TEST_F(TakeoverTest, NodesKilledUnderTheLog) {
  StartNodes(5);
  const OwnerPlan plan = Plan("rep(3)");
  OwnerProcess owner("db_tests", plan);
  ASSERT_TRUE(owner.AwaitProgress(500));
  for (const size_t victim : {random_.Uniform(2), 2 + random_.Uniform(3)}) {
    (*nodes_)[victim].Kill();
    // Writes go on without waiting for a repair.
    ASSERT_TRUE(owner.AwaitProgress(500));
  }
  owner.Kill();
  std::unique_ptr<DB> db;
  ASSERT_NO_FATAL_FAILURE(Open(OptionsFor(plan), &db));
  owner.Check(db.get());
  EXPECT_TRUE(IsOk(db->Close()));
}

TEST_F(TakeoverTest, ALogThatNobodyWritesToGetsItsCopiesBack) {
  StartNodes(4);
  Options options = OptionsFor(Plan("rep(2)"));
  options.create_if_missing = true;
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(IsOk(db->Put({}, "key" + std::to_string(i), std::to_string(i))));
  }
  // In the end no node is left that was there when they were written.
  for (size_t victim = 0; victim < nodes_->size(); ++victim) {
    SCOPED_TRACE("node " + std::to_string(victim));
    (*nodes_)[victim].Kill();
    (*nodes_)[victim].Start();
    std::string seen;
    ASSERT_TRUE(Eventually([&] {
      seen = RunBinary("nacre-ctl", {"fsck", "--json", "--pool=" + nodes_->pool_uri()}).output;
      return seen.find("\"spare_nodes\": 1,") != std::string::npos;
    })) << seen;
  }
  options.take_over = true;
  std::unique_ptr<DB> next;
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &next)));
  for (int i = 0; i < 10; ++i) {
    std::string value;
    ASSERT_TRUE(IsOk(next->Get({}, "key" + std::to_string(i), &value)));
    EXPECT_EQ(value, std::to_string(i));
  }
}

TEST_F(TakeoverTest, AStoppedOwnerIsFenced) {
  StartNodes(3);
  const OwnerPlan plan = Plan("rep(2)");
  OwnerProcess owner("db_tests", plan);
  ASSERT_TRUE(owner.AwaitProgress(1000));
  owner.Stop();
  Options options = OptionsFor(plan);
  std::unique_ptr<DB> db;
  EXPECT_TRUE(DB::Open(options, "db", &db).IsBusy());
  options.take_over = true;
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
  owner.Check(db.get());
  ASSERT_TRUE(IsOk(db->Put({}, "new", "owner")));
  owner.Continue();
  const std::vector<int64_t> failures = owner.AwaitFailures();
  // One that was stopped inside a write to shared memory is not let go on.
  for (const int64_t failure : failures) {
    EXPECT_TRUE(owner.died() || failure == static_cast<int64_t>(Status::Code::kFenced)) << failure;
  }
  // It has changed nothing.
  ASSERT_TRUE(IsOk(db->Flush({})));
  owner.Check(db.get());
  std::string value;
  ASSERT_TRUE(IsOk(db->Get({}, "new", &value)));
  EXPECT_TRUE(IsOk(db->Close()));
}

TEST_F(TakeoverTest, AnOwnerThatIsWellIsFencedToo) {
  StartNodes(3);
  const OwnerPlan plan = Plan("rs(2,1)");
  OwnerProcess owner("db_tests", plan);
  ASSERT_TRUE(owner.AwaitProgress(500));
  Options options = OptionsFor(plan);
  options.take_over = true;
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
  for (const int64_t failure : owner.AwaitFailures()) {
    EXPECT_EQ(failure, static_cast<int64_t>(Status::Code::kFenced));
  }
  owner.Check(db.get());
  EXPECT_TRUE(IsOk(db->Close()));
}

TEST_F(TakeoverTest, AnOwnerThatKnowsOldAddressesFindsAddedNodes) {
  StartNodes(2);
  const OwnerPlan plan = Plan("rep(2)");
  OwnerProcess owner("db_tests", plan);
  ASSERT_TRUE(owner.AwaitProgress(200));
  MemnodeProcesses added(2, {.scheme = "shm", .size = "256MiB", .slab_size = "1MiB"});
  const auto ctl = [&](std::vector<std::string> arguments) {
    arguments.push_back("--pool=" + nodes_->pool_uri());
    const ProcessResult result = RunBinary("nacre-ctl", arguments);
    EXPECT_EQ(result.exit_code, 0) << result.output;
  };
  for (size_t i = 0; i < added.size(); ++i) ctl({"add", added[i].address()});
  // What is on them now is nowhere else.
  for (size_t i = 0; i < nodes_->size(); ++i) ctl({"drain", (*nodes_)[i].address()});
  owner.Kill();
  std::unique_ptr<DB> db;
  ASSERT_NO_FATAL_FAILURE(Open(OptionsFor(plan), &db));
  owner.Check(db.get());
  EXPECT_TRUE(IsOk(db->Close()));
}

TEST_F(TakeoverTest, AnOwnerThatReachesTooFewNodesReadsNothing) {
  StartNodes(3);
  Options options = OptionsFor(Plan("rep(2)"));
  options.create_if_missing = true;
  options.operation_timeout = std::chrono::milliseconds(500);
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
  ASSERT_TRUE(IsOk(db->Put({}, "key", "value")));
  for (size_t i = 0; i < nodes_->size(); ++i) (*nodes_)[i].Kill();
  // For all it knows the nodes are well and serve a successor, which has written something else.
  Status status;
  EXPECT_TRUE(Eventually([&] {
    std::string value;
    status = db->Get({}, "key", &value);
    EXPECT_TRUE(!status.ok() || value == "value");
    return !status.ok();
  }));
  EXPECT_TRUE(IsFailure(status, Status::Code::kUnavailable, "nobody has taken it over"));
}

}  // namespace
}  // namespace nacre
