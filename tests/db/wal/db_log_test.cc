// Goal: what the log promises for each kind of write, as the next owner sees it: acknowledged
// writes are there, unlogged ones only if they were flushed, those of a manual flush once they were
// flushed; the log's space comes back; a full pool and a lack of nodes answer clearly and pass.
// Method: nacre-memnode processes, and two owners in this process, each with its own connections:
// the second one takes over while the first is in the middle of things, which is what is left by
// one that is killed.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/write_batch.h"
#include "pool/databases.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/served_nodes.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

class DBLogTest : public testing::Test {
 protected:
  void StartNodes(int count, const std::string& size = "256MiB") {
    nodes_ = std::make_unique<MemnodeProcesses>(
        count, MemnodeProcessOptions{.size = size, .slab_size = "1MiB"});
    options_ = SmallTableOptions(nullptr);
    options_.pool_uri = nodes_->pool_uri();
    options_.redundancy = "rep(2)";
  }
  void Open() { ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_))); }
  /// The next owner; the one before stays where it was and is fenced.
  void TakeOver() {
    old_ = std::move(db_);
    Options options = options_;
    options.take_over = true;
    ASSERT_TRUE(IsOk(DB::Open(options, "db", &db_)));
    const Status late =
        options_.manual_wal_flush ? old_->FlushWAL(true) : old_->Put({}, "late", "write");
    EXPECT_TRUE(late.IsFenced()) << late.ToString();
    std::string value;
    EXPECT_TRUE(old_->Get({}, "k", &value).IsFenced());
    EXPECT_FALSE(old_->Close().ok());
    old_.reset();
  }
  std::string Get(const std::string& key) {
    std::string value;
    const Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.ToString();
  }

  const std::string absent_ = Status::NotFound().ToString();
  std::unique_ptr<MemnodeProcesses> nodes_;
  Options options_;
  std::unique_ptr<DB> old_;
  std::unique_ptr<DB> db_;
};

TEST_F(DBLogTest, EveryKindOfWrite) {
  StartNodes(3);
  Open();
  const std::string large = TestValue(1, 3 << 20);
  const std::string longer_than_the_ring = TestValue(2, 300 << 10);
  WriteOptions sync;
  sync.sync = true;
  ASSERT_TRUE(IsOk(db_->Put({}, "put", "1")));
  ASSERT_TRUE(IsOk(db_->Put({}, "deleted", "1")));
  ASSERT_TRUE(IsOk(db_->Delete({}, "deleted")));
  ASSERT_TRUE(IsOk(db_->Put(sync, "synced", "2")));
  ASSERT_TRUE(IsOk(db_->Put({}, "large", large)));
  ASSERT_TRUE(IsOk(db_->Put({}, "longer", longer_than_the_ring)));
  ASSERT_TRUE(IsOk(db_->Put({}, "empty", "")));
  ASSERT_TRUE(IsOk(db_->Put({}, "", "empty key")));
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put("batch", "first")));
  ASSERT_TRUE(IsOk(batch.Delete("put")));
  ASSERT_TRUE(IsOk(batch.Put("batch", "last")));
  ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "unlogged and flushed", "3")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "unlogged", "4")));
  ASSERT_TRUE(IsOk(db_->Put({}, "last", "5")));
  ASSERT_NO_FATAL_FAILURE(TakeOver());

  EXPECT_EQ(Get("put"), absent_);
  EXPECT_EQ(Get("deleted"), absent_);
  EXPECT_EQ(Get("synced"), "2");
  EXPECT_EQ(Get("large"), large);
  EXPECT_EQ(Get("longer"), longer_than_the_ring);
  EXPECT_EQ(Get("empty"), "");
  EXPECT_EQ(Get(""), "empty key");
  EXPECT_EQ(Get("batch"), "last");
  EXPECT_EQ(Get("unlogged and flushed"), "3");
  EXPECT_EQ(Get("unlogged"), absent_);
  EXPECT_EQ(Get("last"), "5");
  EXPECT_EQ(Get("late"), absent_);
}

TEST_F(DBLogTest, AsManyCopiesAsThereMayBe) {
  constexpr size_t kCopies = 16;
  ServedNodes nodes(kCopies, 16 << 20, 1 << 20);
  std::vector<std::string> addresses;
  for (size_t i = 0; i < kCopies; ++i) addresses.push_back(nodes.address(i));
  options_ = SmallTableOptions(nullptr);
  options_.pool_uri = PoolUriOf(addresses);
  options_.redundancy = "rep(16)";
  Open();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(IsOk(db_->Put({}, "k", std::to_string(i))));
  // A new owner needs more than half of the nodes.
  for (size_t i = 0; i < kCopies / 2 - 1; ++i) nodes.Kill(i);
  options_.allow_degraded_writes = true;
  ASSERT_NO_FATAL_FAILURE(TakeOver());
  EXPECT_EQ(Get("k"), "99");
  db_.reset();
}

TEST_F(DBLogTest, SnapshotsAndSequencesGoOn) {
  StartNodes(3);
  Open();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(IsOk(db_->Put({}, "k", std::to_string(i))));
  const uint64_t sequence = db_->GetLatestSequenceNumber();
  ASSERT_NO_FATAL_FAILURE(TakeOver());
  EXPECT_GE(db_->GetLatestSequenceNumber(), sequence);
  const Snapshot* snapshot = db_->GetSnapshot();
  ASSERT_TRUE(IsOk(db_->Put({}, "k", "new")));
  ReadOptions then;
  then.snapshot = snapshot;
  std::string value;
  ASSERT_TRUE(IsOk(db_->Get(then, "k", &value)));
  EXPECT_EQ(value, "99");
  db_->ReleaseSnapshot(snapshot);
  EXPECT_EQ(Get("k"), "new");
}

TEST_F(DBLogTest, AManualFlushOfTheLog) {
  StartNodes(3);
  options_.manual_wal_flush = true;
  Open();
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "1")));
  ASSERT_TRUE(IsOk(db_->FlushWAL(false)));
  ASSERT_TRUE(IsOk(db_->Put({}, "b", "2")));
  ASSERT_TRUE(IsOk(db_->SyncWAL()));
  WriteOptions sync;
  sync.sync = true;
  ASSERT_TRUE(IsOk(db_->Put(sync, "c", "3")));
  ASSERT_TRUE(IsOk(db_->Put({}, "d", "4")));
  EXPECT_EQ(Get("d"), "4");
  ASSERT_NO_FATAL_FAILURE(TakeOver());
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), "2");
  EXPECT_EQ(Get("c"), "3");
}

TEST_F(DBLogTest, AnEmbeddedPoolHasNoLogAndNeedsNone) {
  options_ = SmallTableOptions(OpenTestPool());
  Open();
  ASSERT_TRUE(IsOk(db_->Put({}, "k", "v")));
  ASSERT_TRUE(IsOk(db_->FlushWAL(true)));
  EXPECT_EQ(Get("k"), "v");
  ASSERT_TRUE(IsOk(db_->Close()));
  Open();
  EXPECT_EQ(Get("k"), "v");
}

TEST_F(DBLogTest, ALogIsRecycled) {
  StartNodes(3, "64MiB");
  Open();
  // Many times what the nodes hold goes through the log.
  Random random(TestSeed(41));
  std::map<std::string, std::string> model;
  for (int i = 0; i < 60'000; ++i) {
    const std::string key = "k" + std::to_string(random.Uniform(500));
    model[key] = TestValue(static_cast<uint64_t>(i), 4000);
    ASSERT_TRUE(IsOk(db_->Put({}, key, model[key])));
  }
  ASSERT_NO_FATAL_FAILURE(TakeOver());
  for (const auto& [key, value] : model) ASSERT_EQ(Get(key), value);
}

TEST_F(DBLogTest, ManyOwnersInARow) {
  StartNodes(3, "64MiB");
  Open();
  std::map<std::string, std::string> model;
  for (int owner = 0; owner < 6; ++owner) {
    for (int i = 0; i < 200; ++i) {
      const std::string key = "k" + std::to_string(i * owner % 701);
      model[key] = TestValue(static_cast<uint64_t>(1000 * owner + i), 500);
      ASSERT_TRUE(IsOk(db_->Put({}, key, model[key])));
    }
    ASSERT_NO_FATAL_FAILURE(TakeOver());
    for (const auto& [key, value] : model) ASSERT_EQ(Get(key), value);
  }
  ASSERT_TRUE(IsOk(db_->Close()));
  Open();
  for (const auto& [key, value] : model) ASSERT_EQ(Get(key), value);
}

TEST_F(DBLogTest, AFullPoolRefusesWritesAndLosesNone) {
  StartNodes(2, "24MiB");
  options_.disable_auto_compactions = true;
  options_.level0_slowdown_writes_trigger = options_.level0_stop_writes_trigger = 1000;
  Open();
  Status full;
  int written = 0;
  for (; full.ok() && written < 100'000; ++written) {
    full = db_->Put({}, "k" + std::to_string(written), TestValue(7, 1000));
  }
  EXPECT_TRUE(full.IsNoSpace()) << full.ToString();
  --written;
  ASSERT_GT(written, 1000);
  for (int i = 0; i < written; i += 97) ASSERT_EQ(Get("k" + std::to_string(i)), TestValue(7, 1000));
  old_ = std::move(db_);
  options_.take_over = true;
  Open();
  for (int i = 0; i < written; i += 97) ASSERT_EQ(Get("k" + std::to_string(i)), TestValue(7, 1000));
}

TEST_F(DBLogTest, TooFewNodesForALogUntilThereIsOneMore) {
  StartNodes(3);
  options_.operation_timeout = std::chrono::milliseconds(2000);
  Open();
  ASSERT_TRUE(IsOk(db_->Put({}, "before", "1")));
  (*nodes_)[1].Kill();
  // Half of those that the root names must be there, so it has to be told of one loss before the
  // next.
  const std::shared_ptr<pool::PoolImpl> pool = ConnectTestPool(nodes_->pool_uri());
  ASSERT_NE(pool, nullptr);
  ASSERT_TRUE(Eventually([&] {
    pool::DatabaseRoot root;
    return pool->client()->databases()->Find("db", &root).ok() && root.members.size() == 2 &&
           !root.members_change;
  }));
  ASSERT_TRUE(IsOk(db_->Put({}, "in between", "1")));
  (*nodes_)[2].Kill();
  Status refused;
  EXPECT_TRUE(Eventually([&] {
    refused = db_->Put({}, "meanwhile", "2");
    return !refused.ok();
  }));
  EXPECT_TRUE(refused.IsUnavailable() || refused.IsTimedOut()) << refused.ToString();
  EXPECT_EQ(Get("before"), "1");
  (*nodes_)[1].Start();
  EXPECT_TRUE(Eventually([&] { return db_->Put({}, "after", "3").ok(); }));
  EXPECT_EQ(Get("before"), "1");
  EXPECT_EQ(Get("after"), "3");
}

TEST_F(DBLogTest, DatabasesAreListedAndDestroyed) {
  StartNodes(3);
  Open();
  std::unique_ptr<DB> other;
  ASSERT_TRUE(IsOk(DB::Open(options_, "another", &other)));
  std::vector<std::string> names;
  ASSERT_TRUE(IsOk(ListDBs(options_, &names)));
  EXPECT_EQ(names, (std::vector<std::string>{"another", "db"}));
  EXPECT_TRUE(DestroyDB("another", options_).IsBusy());
  ASSERT_TRUE(IsOk(other->Put({}, "k", "v")));
  ASSERT_TRUE(IsOk(other->Close()));
  ASSERT_TRUE(IsOk(DestroyDB("another", options_)));
  ASSERT_TRUE(IsOk(DestroyDB("another", options_)));
  ASSERT_TRUE(IsOk(ListDBs(options_, &names)));
  EXPECT_EQ(names, (std::vector<std::string>{"db"}));
  Options absent = options_;
  absent.create_if_missing = false;
  EXPECT_TRUE(DB::Open(absent, "another", &other).IsInvalidArgument());
}

}  // namespace
}  // namespace nacre
