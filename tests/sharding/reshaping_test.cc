// Goal: shards are split and merged while they are used, and nothing that was acknowledged is lost,
// nothing is seen twice, and batches over them stay whole; what cannot be done is refused with what
// is wrong, and changes nothing.
// Method: keyspaces over an embedded pool; threads that write and read beside splits and merges.
// Random operations with splits and merges among them are in sharded_model_test.cc.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/utilities/sharded_db.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/clock.h"
#include "util/random.h"

namespace nacre {
namespace {

class ReshapingTest : public testing::Test {
 protected:
  ReshapingTest() : options_(SmallTableOptions(OpenTestPool({}))) {}

  void Open() { ASSERT_TRUE(IsOk(ShardedDB::Open(options_, "keys", &db_))); }
  void Reopen() {
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
    Open();
  }
  uint32_t IdOf(size_t index) { return db_->GetShards()[index].id; }
  std::string Begins() {
    std::string begins;
    for (const ShardInfo& shard : db_->GetShards()) begins += shard.begin + ' ';
    return begins;
  }
  std::string Walk() {
    std::string keys;
    const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      keys += iterator->key().ToString() + ' ';
    }
    EXPECT_TRUE(IsOk(iterator->status()));
    return keys;
  }
  void AwaitShards(const std::function<bool(size_t shards)>& enough) {
    const Deadline deadline = Deadline::After(Clock::System(), std::chrono::seconds(60));
    while (!enough(db_->GetShards().size())) {
      ASSERT_FALSE(deadline.Expired()) << db_->GetShards().size() << " shards";
      Clock::System()->SleepFor(std::chrono::milliseconds(20));
    }
  }
  size_t CountDatabases() {
    std::vector<std::string> names;
    EXPECT_TRUE(IsOk(ListDBs(options_, &names)));
    return names.size();
  }

  ShardedOptions options_;
  std::unique_ptr<ShardedDB> db_;
};

TEST_F(ReshapingTest, NewShardsHaveWhatTheOldOnesHad) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (const char* key : {"a", "d", "m", "z"}) ASSERT_TRUE(IsOk(db_->Put({}, key, key)));
  ASSERT_TRUE(IsOk(db_->SplitShard(IdOf(0), "m")));
  EXPECT_EQ(Begins(), " m ");
  EXPECT_EQ(Walk(), "a d m z ");
  ASSERT_TRUE(IsOk(db_->Put({}, "b", "b")));
  ASSERT_TRUE(IsOk(db_->SplitShard(IdOf(0), "c")));
  ASSERT_TRUE(IsOk(db_->Delete({}, "z")));
  EXPECT_EQ(Begins(), " c m ");
  EXPECT_EQ(Walk(), "a b d m ");
  // The databases of the map and of three shards.
  EXPECT_EQ(CountDatabases(), 4u);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(Begins(), " c m ");
  EXPECT_EQ(Walk(), "a b d m ");
  ASSERT_TRUE(IsOk(db_->MergeShards(IdOf(1), IdOf(2))));
  EXPECT_EQ(Begins(), " c ");
  EXPECT_EQ(Walk(), "a b d m ");
  ASSERT_TRUE(IsOk(db_->MergeShards(IdOf(0), IdOf(1))));
  ASSERT_TRUE(IsOk(db_->Put({}, "n", "n")));
  EXPECT_EQ(Walk(), "a b d m n ");
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(Walk(), "a b d m n ");
  EXPECT_EQ(CountDatabases(), 2u);
}

TEST_F(ReshapingTest, ByItselfAShardIsSplitInItsMiddle) {
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_TRUE(db_->SplitShard(IdOf(0), "").IsNotFound());
  ASSERT_TRUE(IsOk(db_->Put({}, "only", "one")));
  EXPECT_TRUE(db_->SplitShard(IdOf(0), "").IsNotFound());
  for (int i = 1000; i < 9000; ++i) {
    ASSERT_TRUE(IsOk(db_->Put({}, std::to_string(i), TestValue(1, 100))));
  }
  ASSERT_TRUE(IsOk(db_->SplitShard(IdOf(0), "")));
  const int middle = std::stoi(db_->GetShards()[1].begin);
  EXPECT_GT(middle, 4000);
  EXPECT_LT(middle, 6000);
}

TEST_F(ReshapingTest, LargeShardsAreSplitByThemselvesAndColdOnesMerged) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(db_->SetBalance({{"split_bytes", "1MiB"}})));
  for (int i = 10'000; i < 12'000; ++i) {
    ASSERT_TRUE(IsOk(db_->Put({}, std::to_string(i), TestValue(1, 1000))));
  }
  AwaitShards([](size_t shards) { return shards >= 2; });
  // Nothing is split any more once the owner says so.
  ASSERT_TRUE(IsOk(db_->SetBalance({{"paused", "true"}})));
  const std::string begins = Begins();
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(Begins(), begins);
  auto balance = db_->GetBalance();
  EXPECT_EQ(balance["split_bytes"], "1048576");
  EXPECT_EQ(balance["paused"], "true");
  for (int i = 10'000; i < 12'000; ++i) {
    std::string value;
    ASSERT_TRUE(IsOk(db_->Get({}, std::to_string(i), &value))) << i;
    ASSERT_EQ(value, TestValue(1, 1000));
  }
  ASSERT_TRUE(
      IsOk(db_->SetBalance({{"paused", "0"}, {"split_bytes", "64MiB"}, {"merge_bytes", "32MiB"}})));
  AwaitShards([](size_t shards) { return shards == 1; });
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(CountDatabases(), 2u);
}

TEST_F(ReshapingTest, MistakesInTheBalanceChangeNothing) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(db_->SetBalance({{"merge_bytes", "1GiB"}})));
  const auto before = db_->GetBalance();
  const auto expect_mistake = [&](const std::string& name, const std::string& value) {
    const Status status = db_->SetBalance({{"imbalance_percent", "7"}, {name, value}});
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    EXPECT_NE(status.ToString().find(name), std::string::npos) << status.ToString();
    EXPECT_EQ(db_->GetBalance(), before);
  };
  expect_mistake("split_byte", "1GiB");
  expect_mistake("split_bytes", "much");
  expect_mistake("split_bytes", "1023KiB");
  expect_mistake("merge_bytes", "3GiB");
  expect_mistake("paused", "perhaps");
  expect_mistake("split_operations_per_second", "-1");
  // 0 is the default again.
  ASSERT_TRUE(IsOk(db_->SetBalance({{"merge_bytes", "0"}})));
  EXPECT_EQ(db_->GetBalance().at("merge_bytes"), "0");
  EXPECT_EQ(db_->GetBalance().at("split_bytes"), std::to_string(uint64_t{4} << 30));
}

TEST_F(ReshapingTest, WhatAnEarlierAttemptLeftIsGone) {
  // As after a split whose map could not be saved: the next one has the same ids.
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(db_->Put({}, "z", "z")));
  Options create = options_;
  create.create_if_missing = true;
  std::unique_ptr<DB> left;
  ASSERT_TRUE(IsOk(DB::Open(create, "keys@1", &left)));
  ASSERT_TRUE(IsOk(left->Put({}, "b", "of an earlier attempt")));
  ASSERT_TRUE(IsOk(left->Close()));
  left.reset();
  ASSERT_TRUE(IsOk(db_->SplitShard(IdOf(0), "m")));
  EXPECT_EQ(db_->GetShards()[0].database, "keys@1");
  EXPECT_EQ(Walk(), "z ");
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(Walk(), "z ");
}

TEST_F(ReshapingTest, MistakesAreNamed) {
  options_.boundaries = {"d", "m"};
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_TRUE(db_->SplitShard(77, "x").IsInvalidArgument());
  EXPECT_TRUE(db_->SplitShard(IdOf(0), "d").IsInvalidArgument());  // The next one's.
  EXPECT_TRUE(db_->SplitShard(IdOf(1), "d").IsInvalidArgument());  // It begins there.
  EXPECT_TRUE(db_->SplitShard(IdOf(1), "a").IsInvalidArgument());  // The one's before.
  EXPECT_TRUE(db_->MergeShards(IdOf(0), IdOf(2)).IsInvalidArgument());
  EXPECT_TRUE(db_->MergeShards(IdOf(1), IdOf(0)).IsInvalidArgument());
  EXPECT_TRUE(db_->MergeShards(IdOf(1), IdOf(1)).IsInvalidArgument());
  EXPECT_EQ(Begins(), " d m ");
  EXPECT_EQ(CountDatabases(), 4u);
}

TEST_F(ReshapingTest, WhatWasTakenBeforeSaysThatItIsOver) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_TRUE(IsOk(db_->Put({}, "a", "a")));
  const Snapshot* const snapshot = db_->GetSnapshot();
  ReadOptions before;
  before.snapshot = snapshot;
  std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
  ASSERT_TRUE(IsOk(db_->SplitShard(IdOf(0), "m")));
  std::string value;
  EXPECT_TRUE(db_->Get(before, "a", &value).IsAborted());
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().IsAborted()) << iterator->status().ToString();
  db_->ReleaseSnapshot(snapshot);
  iterator.reset();
  EXPECT_TRUE(IsOk(db_->Get({}, "a", &value)));
}

TEST_F(ReshapingTest, FamiliesStay) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ColumnFamilyHandle* made = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily(options_, "other", &made)));
  const std::unique_ptr<ColumnFamilyHandle> other(made);
  ASSERT_TRUE(IsOk(db_->Put({}, other.get(), "a", "1")));
  ASSERT_TRUE(IsOk(db_->Put({}, other.get(), "z", "2")));
  ASSERT_TRUE(IsOk(db_->SplitShard(IdOf(0), "m")));
  std::string value;
  ASSERT_TRUE(IsOk(db_->Get({}, other.get(), "a", &value)));
  EXPECT_EQ(value, "1");
  ASSERT_TRUE(IsOk(db_->Get({}, other.get(), "z", &value)));
  EXPECT_EQ(value, "2");
  EXPECT_TRUE(db_->Get({}, "z", &value).IsNotFound());
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put(other.get(), "b", "3")));
  ASSERT_TRUE(IsOk(batch.Put("y", "4")));
  ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
  ColumnFamilyHandle* later = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily(options_, "later", &later)));
  const std::unique_ptr<ColumnFamilyHandle> third(later);
  ASSERT_TRUE(IsOk(db_->Put({}, third.get(), "y", "5")));
  ASSERT_TRUE(IsOk(db_->MergeShards(IdOf(0), IdOf(1))));
  ASSERT_TRUE(IsOk(db_->Get({}, other.get(), "b", &value)));
  EXPECT_EQ(value, "3");
  ASSERT_TRUE(IsOk(db_->Get({}, third.get(), "y", &value)));
  EXPECT_EQ(value, "5");
}

// Accounts whose sum never changes, as transfers are batches; and counters that each thread alone
// writes, and finds as it left them.
TEST_F(ReshapingTest, NothingIsLostOfWhatIsWrittenMeanwhile) {
  constexpr int kAccounts = 64;
  constexpr int kThreads = 2;
  const auto account = [](uint64_t number) { return "a" + std::to_string(100 + number); };
  options_.boundaries = {"a120", "a140"};
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int i = 0; i < kAccounts; ++i) ASSERT_TRUE(IsOk(db_->Put({}, account(i), "1000")));
  std::atomic<bool> done{false};
  std::atomic<uint64_t> transfers{0};
  std::vector<std::thread> threads;
  const uint64_t seed = TestSeed(7);
  // One thread transfers, so that it may read and write without a transaction.
  threads.emplace_back([&] {
    Random random(seed);
    while (!done) {
      const std::string from = account(random.Uniform(kAccounts));
      const std::string to = account(random.Uniform(kAccounts));
      if (from == to) continue;
      std::string a;
      std::string b;
      ASSERT_TRUE(IsOk(db_->Get({}, from, &a)));
      ASSERT_TRUE(IsOk(db_->Get({}, to, &b)));
      WriteBatch batch;
      ASSERT_TRUE(IsOk(batch.Put(from, std::to_string(std::stoi(a) - 1))));
      ASSERT_TRUE(IsOk(batch.Put(to, std::to_string(std::stoi(b) + 1))));
      ASSERT_TRUE(IsOk(db_->Write({}, &batch)));
      ++transfers;
    }
  });
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed + 1 + static_cast<uint64_t>(t));
      std::map<std::string, std::string> mine;
      for (int count = 0; !done; ++count) {
        const std::string key = account(random.Uniform(kAccounts)) + "-" + std::to_string(t);
        std::string value;
        const Status found = db_->Get({}, key, &value);
        if (mine.contains(key)) {
          ASSERT_TRUE(IsOk(found));
          ASSERT_EQ(value, mine[key]);
        } else {
          ASSERT_TRUE(found.IsNotFound()) << found.ToString();
        }
        mine[key] = std::to_string(count);
        ASSERT_TRUE(IsOk(db_->Put({}, key, mine[key])));
      }
    });
  }
  Random random(seed + 100);
  int reshaped = 0;
  for (int i = 0; i < 24; ++i) {
    const std::vector<ShardInfo> shards = db_->GetShards();
    Status status;
    if (shards.size() > 4 || (shards.size() > 1 && random.OneIn(2))) {
      const size_t low = random.Uniform(shards.size() - 1);
      status = db_->MergeShards(shards[low].id, shards[low + 1].id);
      EXPECT_TRUE(IsOk(status));
    } else {
      status = db_->SplitShard(shards[random.Uniform(shards.size())].id,
                               account(random.Uniform(kAccounts)));
      EXPECT_TRUE(status.ok() || status.IsInvalidArgument()) << status.ToString();
    }
    if (status.ok()) ++reshaped;
    int sum = 0;
    int accounts = 0;
    const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      if (iterator->key().size() != 4) continue;
      sum += std::stoi(iterator->value().ToString());
      ++accounts;
    }
    ASSERT_TRUE(IsOk(iterator->status()));
    EXPECT_EQ(accounts, kAccounts);
    EXPECT_EQ(sum, kAccounts * 1000);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(reshaped, 8);
  EXPECT_GT(transfers, 50u);
}

}  // namespace
}  // namespace nacre
