// Goal: coroutines read and write what other callers would, hundreds at a time on one thread; what
// has to wait (stalls, lost nodes, cold indexes, large values) holds up no other operation and
// loses nothing. Method: workers on a RunLoop against a model, over embedded nodes and processes,
// beside compactions, threads that write, and nodes that die.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "nacre/async.h"
#include "nacre/db.h"
#include "nacre/task.h"
#include "tests/support/process/test_nodes.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

class AsyncDBTest : public testing::TestWithParam<NodeKind> {
 protected:
  void Open(const std::function<void(Options*)>& change = [](Options*) {}) {
    nodes_ = std::make_unique<TestNodes>(GetParam());
    ASSERT_NE(nodes_->pool(), nullptr);
    options_ = SmallTableOptions(nodes_->pool());
    change(&options_);
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
    ASSERT_TRUE(IsOk(db_->NewAsyncDB(&loop_, &async_)));
  }
  ~AsyncDBTest() override { async_.reset(); }

  static std::string Key(size_t i) { return "key" + std::to_string(i * 7919 % 100'003); }

  void Fill(size_t keys, size_t value_bytes = 300) {
    for (size_t i = 0; i < keys; ++i) {
      std::string value = TestValue(i, value_bytes);
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), value)));
      model_[Key(i)] = std::move(value);
    }
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  }

  /// Reads random keys, one in eleven of which are not there.
  Task<void> ReadSome(size_t reads, uint64_t seed) {
    Random random(seed);
    const size_t keys = model_.size() + model_.size() / 10;
    for (size_t i = 0; i < reads; ++i) {
      const std::string key = Key(random.Uniform(keys));
      PinnableSlice value;
      const Status status = co_await async_->GetAsync({}, key, &value);
      const auto expected = model_.find(key);
      if (expected == model_.end()) {
        EXPECT_TRUE(status.IsNotFound()) << status.ToString();
      } else if (IsOk(status)) {
        EXPECT_EQ(value.ToString(), expected->second) << key;
      } else {
        ADD_FAILURE() << key << ": " << status.ToString();
      }
    }
  }

  Task<void> MultiReadSome(size_t reads, size_t at_once, uint64_t seed) {
    Random random(seed);
    const size_t count = model_.size() + model_.size() / 10;
    for (size_t i = 0; i < reads; ++i) {
      std::vector<std::string> names(at_once);
      for (std::string& name : names) name = Key(random.Uniform(count));
      const std::vector<Slice> keys(names.begin(), names.end());
      std::vector<PinnableSlice> values(at_once);
      std::vector<Status> statuses(at_once);
      EXPECT_TRUE(IsOk(co_await async_->MultiGetAsync({}, at_once, keys.data(), values.data(),
                                                      statuses.data())));
      for (size_t k = 0; k < at_once; ++k) {
        const auto expected = model_.find(names[k]);
        if (expected == model_.end()) {
          EXPECT_TRUE(statuses[k].IsNotFound()) << statuses[k].ToString();
        } else {
          EXPECT_TRUE(IsOk(statuses[k]));
          EXPECT_EQ(values[k].ToString(), expected->second);
        }
      }
    }
  }

  std::unique_ptr<TestNodes> nodes_;
  Options options_;
  std::unique_ptr<DB> db_;
  std::map<std::string, std::string> model_;
  RunLoop loop_;
  std::unique_ptr<AsyncDB> async_;
};

Task<int> Answer(bool fail) {
  if (fail) throw std::runtime_error("failed");
  co_return 42;
}

TEST(RunLoopTest, TasksGiveValuesAndExceptions) {
  RunLoop loop;
  int answer = 0;
  bool caught = false;
  loop.Spawn([](int* to, bool* failed) -> Task<void> {
    *to = co_await Answer(false);
    try {
      co_await Answer(true);
    } catch (const std::runtime_error&) {
      *failed = true;
    }
  }(&answer, &caught));
  loop.Run();
  EXPECT_EQ(answer, 42);
  EXPECT_TRUE(caught);
  loop.Spawn([]() -> Task<void> { co_await Answer(true); }());
  EXPECT_THROW(loop.Run(), std::runtime_error);
  loop.Run();
}

TEST_P(AsyncDBTest, HundredsReadAtOnce) {
  const uint64_t seed = TestSeed(100);
  Open();
  Fill(5000);
  for (uint64_t i = 0; i < 300; ++i) loop_.Spawn(ReadSome(Scaled(50), seed + i));
  for (uint64_t i = 0; i < 10; ++i) loop_.Spawn(MultiReadSome(Scaled(10), 50, seed + i));
  loop_.Run();
  EXPECT_EQ(async_->under_way(), 0u);
}

TEST_P(AsyncDBTest, BesideCompactions) {
  const uint64_t seed = TestSeed(200);
  Open();
  Fill(3000);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    // The same values once more, so that tables come and go.
    for (size_t i = 0; !stop.load(); i = (i + 1) % 3000) {
      EXPECT_TRUE(IsOk(db_->Put(NoLog(), Key(i), TestValue(i, 300))));
      if (i == 2999) {
        EXPECT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
      }
    }
  });
  for (int round = 0; round < 5; ++round) {
    for (uint64_t i = 0; i < 100; ++i) loop_.Spawn(ReadSome(Scaled(50), seed + i));
    loop_.Run();
  }
  stop = true;
  writer.join();
}

TEST_P(AsyncDBTest, LargeValuesAndColdIndexes) {
  const uint64_t seed = TestSeed(300);
  Open([](Options* options) { options->index_memory_budget = 0; });
  Fill(300, 2000);
  for (size_t i = 0; i < 20; ++i) {
    model_[Key(i)] = TestValue(i, 200'000);
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), model_[Key(i)])));
  }
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  for (uint64_t i = 0; i < 100; ++i) loop_.Spawn(ReadSome(Scaled(20), seed + i));
  loop_.Run();
}

Task<void> Count(AsyncDB* async, std::string key, size_t times) {
  for (size_t i = 0; i < times; ++i) {
    PinnableSlice value;
    Status status = co_await async->GetAsync({}, key, &value);
    uint64_t count = 0;
    if (status.ok()) {
      count = std::stoull(value.ToString());
    } else {
      EXPECT_TRUE(status.IsNotFound()) << status.ToString();
    }
    // What it wrote itself it sees at once.
    EXPECT_EQ(count, i);
    WriteBatch batch;
    EXPECT_TRUE(IsOk(batch.Put(key, std::to_string(count + 1))));
    EXPECT_TRUE(IsOk(batch.Put(key + ".twin", std::to_string(count + 1))));
    EXPECT_TRUE(IsOk(co_await async->WriteAsync({}, &batch)));
  }
}

Task<void> CompareTwins(AsyncDB* async, size_t workers, size_t times) {
  for (size_t i = 0; i < times; ++i) {
    const std::string key = "counter" + std::to_string(i % workers);
    const std::string twin = key + ".twin";
    const Slice keys[] = {key, twin};
    PinnableSlice values[2];
    Status statuses[2];
    EXPECT_TRUE(IsOk(co_await async->MultiGetAsync({}, 2, keys, values, statuses)));
    EXPECT_EQ(statuses[0].ok(), statuses[1].ok());
    EXPECT_EQ(values[0].ToString(), values[1].ToString());
  }
}

TEST_P(AsyncDBTest, WritersSeeTheirWritesAndBatchesAreWhole) {
  Open();
  constexpr size_t kWorkers = 100;
  const size_t times = Scaled(30);
  for (size_t i = 0; i < kWorkers; ++i) {
    loop_.Spawn(Count(async_.get(), "counter" + std::to_string(i), times));
  }
  loop_.Spawn(CompareTwins(async_.get(), kWorkers, 10 * times));
  loop_.Run();
  for (size_t i = 0; i < kWorkers; ++i) {
    std::string value;
    ASSERT_TRUE(IsOk(db_->Get({}, "counter" + std::to_string(i), &value)));
    EXPECT_EQ(value, std::to_string(times));
  }
}

Task<void> WriteSmall(AsyncDB* async, size_t writer, size_t times) {
  for (size_t i = 0; i < times; ++i) {
    WriteBatch batch;
    EXPECT_TRUE(IsOk(batch.Put("small" + std::to_string(writer), std::to_string(i))));
    EXPECT_TRUE(IsOk(co_await async->WriteAsync({}, &batch)));
  }
}

TEST_P(AsyncDBTest, WritesOfOneTurnGoToTheLogTogether) {
  Open();
  uint64_t before = 0;
  ASSERT_TRUE(db_->GetIntProperty("nacre.log.writes", &before));
  constexpr size_t kWriters = 50;
  constexpr size_t kTimes = 20;
  for (size_t i = 0; i < kWriters; ++i) loop_.Spawn(WriteSmall(async_.get(), i, kTimes));
  loop_.Run();
  uint64_t after = 0;
  ASSERT_TRUE(db_->GetIntProperty("nacre.log.writes", &after));
  // Coroutines run in step: as many turns as each of them writes times, or some more where the
  // thread that finishes writes was overtaken.
  EXPECT_LT(after - before, kWriters * kTimes / 4);
  for (size_t i = 0; i < kWriters; ++i) {
    std::string value;
    ASSERT_TRUE(IsOk(db_->Get({}, "small" + std::to_string(i), &value)));
    EXPECT_EQ(value, std::to_string(kTimes - 1));
  }
}

Task<void> WriteAndRead(AsyncDB* async, std::string key, int times) {
  for (int i = 0; i < times; ++i) {
    WriteBatch batch;
    EXPECT_TRUE(IsOk(batch.Put(key, std::to_string(i))));
    EXPECT_TRUE(IsOk(co_await async->WriteAsync({}, &batch)));
    PinnableSlice value;
    EXPECT_TRUE(IsOk(co_await async->GetAsync({}, key, &value)));
    EXPECT_EQ(value.ToString(), std::to_string(i));
  }
}

TEST_P(AsyncDBTest, WritesOfSeveralExecutorsWaitForThoseBeforeThem) {
  ASSERT_NO_FATAL_FAILURE(Open([](Options* options) { options->write_buffer_size = 64 << 10; }));
  constexpr int kExecutors = 3;
  constexpr int kWriters = 8;
  constexpr int kTimes = 300;
  std::vector<std::thread> threads;
  for (int e = 0; e < kExecutors; ++e) {
    threads.emplace_back([this, e] {
      RunLoop loop;
      std::unique_ptr<AsyncDB> async;
      ASSERT_TRUE(IsOk(db_->NewAsyncDB(&loop, &async)));
      for (int w = 0; w < kWriters; ++w) {
        loop.Spawn(WriteAndRead(async.get(), "k" + std::to_string(e * kWriters + w), kTimes));
      }
      loop.Run();
    });
  }
  // Threads take sequence numbers between theirs.
  for (int i = 0; i < kTimes; ++i) ASSERT_TRUE(IsOk(db_->Put({}, "other", std::to_string(i))));
  for (std::thread& thread : threads) thread.join();
  for (int k = 0; k < kExecutors * kWriters; ++k) {
    std::string value;
    ASSERT_TRUE(IsOk(db_->Get({}, "k" + std::to_string(k), &value)));
    EXPECT_EQ(value, std::to_string(kTimes - 1));
  }
}

Task<void> WriteThenBlock(AsyncDB* async, DB* db) {
  WriteBatch batch;
  EXPECT_TRUE(IsOk(batch.Put("later", "1")));
  AsyncStatus write = async->WriteAsync({}, &batch);
  // The write that was asked for has not begun, so this one does not wait for it.
  EXPECT_TRUE(IsOk(db->Put({}, "sooner", "1")));
  EXPECT_TRUE(IsOk(co_await std::move(write)));
}

TEST_P(AsyncDBTest, AWriteThatIsNotAwaitedYetHoldsNobodyUp) {
  Open();
  loop_.Spawn(WriteThenBlock(async_.get(), db_.get()));
  loop_.Run();
  std::string value;
  EXPECT_TRUE(IsOk(db_->Get({}, "later", &value)));
  EXPECT_TRUE(IsOk(db_->Get({}, "sooner", &value)));
}

Task<void> WriteLarge(AsyncDB* async, size_t from, size_t count) {
  for (size_t i = from; i < from + count; ++i) {
    WriteBatch batch;
    EXPECT_TRUE(IsOk(batch.Put("large" + std::to_string(i), TestValue(i, 10'000))));
    EXPECT_TRUE(IsOk(co_await async->WriteAsync({}, &batch)));
  }
}

TEST_P(AsyncDBTest, StalledWritesGoOn) {
  // MemTables fill many times over, beside a thread whose writes wait for those that have begun.
  Open([](Options* options) { options->write_buffer_size = 256 << 10; });
  std::thread writer([&] {
    for (size_t i = 0; i < 300; ++i) {
      EXPECT_TRUE(IsOk(db_->Put({}, "sync" + std::to_string(i), TestValue(i, 10'000))));
    }
  });
  for (size_t i = 0; i < 20; ++i) loop_.Spawn(WriteLarge(async_.get(), 20 * i, 20));
  loop_.Run();
  writer.join();
  for (size_t i = 0; i < 400; ++i) {
    std::string value;
    ASSERT_TRUE(IsOk(db_->Get({}, "large" + std::to_string(i), &value)));
    ASSERT_EQ(value, TestValue(i, 10'000));
  }
}

TEST_P(AsyncDBTest, ANodeDiesUnderReaders) {
  const uint64_t seed = TestSeed(400);
  Open([](Options* options) { options->redundancy = "rs(2,1)"; });
  Fill(3000);
  std::thread killer([&] { nodes_->Kill(1); });
  for (int round = 0; round < 5; ++round) {
    for (uint64_t i = 0; i < 100; ++i) loop_.Spawn(ReadSome(Scaled(30), seed + i));
    loop_.Run();
  }
  killer.join();
  for (uint64_t i = 0; i < 100; ++i) loop_.Spawn(ReadSome(Scaled(30), seed + i));
  loop_.Run();
}

Task<void> ReadAll(AsyncDB* async, size_t keys, size_t* found, size_t* unavailable) {
  for (size_t i = 0; i < keys; ++i) {
    const std::string key = "key" + std::to_string(i * 7919 % 100'003);
    PinnableSlice value;
    const Status status = co_await async->GetAsync({}, key, &value);
    if (status.ok()) {
      EXPECT_EQ(value.ToString(), TestValue(i, 300));
      ++*found;
    } else {
      EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
      ++*unavailable;
    }
  }
}

TEST_P(AsyncDBTest, WhatIsLostIsUnavailable) {
  Open();
  Fill(3000);
  nodes_->Kill(1);
  ASSERT_TRUE(Eventually([&] { return !nodes_->pool()->client()->alive(1); }));
  size_t found = 0;
  size_t unavailable = 0;
  loop_.Spawn(ReadAll(async_.get(), 3000, &found, &unavailable));
  loop_.Run();
  EXPECT_GT(found, 0u);
  EXPECT_GT(unavailable, 0u);
}

Task<void> StartMany(AsyncDB* async, const std::map<std::string, std::string>* model) {
  std::vector<AsyncStatus> started;
  std::vector<PinnableSlice> values(model->size());
  size_t i = 0;
  for (const auto& entry : *model) {
    started.push_back(async->GetAsync({}, entry.first, &values[i++]));
  }
  i = 0;
  for (const auto& entry : *model) {
    EXPECT_TRUE(IsOk(co_await std::move(started[i])));
    EXPECT_EQ(values[i++].ToString(), entry.second);
  }
}

TEST_P(AsyncDBTest, OneStartsMoreThanThereIsRoomFor) {
  Open();
  Fill(4000);
  loop_.Spawn(StartMany(async_.get(), &model_));
  loop_.Run();
}

Task<void> DropOne(AsyncDB* async, const std::string& key, PinnableSlice* value) {
  { const AsyncStatus dropped = async->GetAsync({}, key, value); }
  PinnableSlice other;
  EXPECT_TRUE(IsOk(co_await async->GetAsync({}, key, &other)));
  EXPECT_TRUE(IsOk(co_await async->MultiGetAsync({}, 0, nullptr, nullptr, nullptr)));
  while (async->under_way() > 0) {
    EXPECT_TRUE(IsOk(co_await async->GetAsync({}, key, &other)));
  }
}

TEST_P(AsyncDBTest, WhatIsDroppedGoesOnToItsEnd) {
  Open();
  Fill(100);
  const std::string key = Key(5);
  PinnableSlice value;
  loop_.Spawn(DropOne(async_.get(), key, &value));
  loop_.Run();
  EXPECT_EQ(value.ToString(), model_.at(key));
}

TEST_P(AsyncDBTest, SnapshotsAndBadCalls) {
  Open();
  Fill(100);
  const Snapshot* snapshot = db_->GetSnapshot();
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(3), "new")));
  std::string old;
  loop_.Spawn(
      [](AsyncDB* async, const Snapshot* at, std::string key, std::string* result) -> Task<void> {
        ReadOptions options;
        options.snapshot = at;
        PinnableSlice value;
        EXPECT_TRUE(IsOk(co_await async->GetAsync(options, key, &value)));
        *result = value.ToString();
        EXPECT_TRUE((co_await async->WriteAsync({}, nullptr)).IsInvalidArgument());
        WriteBatch malformed(std::string(20, '\x7f'));
        EXPECT_FALSE((co_await async->WriteAsync({}, &malformed)).ok());
        WriteBatch empty;
        EXPECT_TRUE(IsOk(co_await async->WriteAsync({}, &empty)));
      }(async_.get(), snapshot, Key(3), &old));
  loop_.Run();
  EXPECT_EQ(old, model_.at(Key(3)));
  db_->ReleaseSnapshot(snapshot);
  std::unique_ptr<AsyncDB> none;
  EXPECT_TRUE(db_->NewAsyncDB(nullptr, &none).IsInvalidArgument());
}

std::string NameOfKind(const testing::TestParamInfo<NodeKind>& kind) { return NameOf(kind.param); }
INSTANTIATE_TEST_SUITE_P(Nodes, AsyncDBTest, testing::ValuesIn(AllNodeKinds()), NameOfKind);

}  // namespace
}  // namespace nacre
