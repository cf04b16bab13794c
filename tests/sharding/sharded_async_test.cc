// Goal: coroutines read and write the shards of a keyspace as other callers do, whether what they
// read is mapped or lies behind a network, and batches over shards stay whole for them.
// Method: workers on a RunLoop, each of which writes pairs of keys of two shards and reads them and
// the others' back, over embedded nodes and over processes on tcp, beside flushes and splits.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/async.h"
#include "nacre/task.h"
#include "nacre/utilities/sharded_db.h"
#include "tests/support/process/test_nodes.h"
#include "tests/support/scale.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

constexpr size_t kWorkers = 24;

class ShardedAsyncTest : public testing::TestWithParam<NodeKind> {
 protected:
  void SetUp() override {
    nodes_ = std::make_unique<TestNodes>(GetParam());
    ASSERT_NE(nodes_->pool(), nullptr);
    ShardedOptions options(SmallTableOptions(nodes_->pool()));
    options.boundaries = {"high/"};
    ASSERT_TRUE(IsOk(ShardedDB::Open(options, "keys", &db_)));
    ASSERT_TRUE(IsOk(db_->NewAsyncDB(&loop_, &async_)));
  }
  ~ShardedAsyncTest() override { async_.reset(); }

  static std::string Low(size_t worker) { return "-low/" + std::to_string(worker); }
  static std::string High(size_t worker) { return "high/" + std::to_string(worker); }

  Task<void> Work(size_t worker, size_t times) {
    const std::string low = Low(worker);
    const std::string high = High(worker);
    for (size_t i = 1; i <= times; ++i) {
      const std::string number = std::to_string(i);
      WriteBatch batch;
      EXPECT_TRUE(IsOk(batch.Put(low, number)));
      EXPECT_TRUE(IsOk(batch.Put(high, number)));
      EXPECT_TRUE(IsOk(co_await async_->WriteAsync({}, &batch)));
      PinnableSlice value;
      EXPECT_TRUE(IsOk(co_await async_->GetAsync({}, i % 2 == 0 ? low : high, &value)));
      EXPECT_EQ(value.ToString(), number);
      // Both of another worker's, or none.
      const std::string others[] = {Low((worker + i) % kWorkers), High((worker + i) % kWorkers)};
      const Slice keys[] = {others[0], others[1]};
      PinnableSlice values[2];
      Status statuses[2];
      EXPECT_TRUE(IsOk(co_await async_->MultiGetAsync({}, 2, keys, values, statuses)));
      EXPECT_EQ(statuses[0].ok(), statuses[1].ok());
      EXPECT_EQ(values[0].ToString(), values[1].ToString());
      if (i % 16 == 0) {
        EXPECT_TRUE(IsOk(db_->Flush({})));
      }
    }
  }

  std::unique_ptr<TestNodes> nodes_;
  std::unique_ptr<ShardedDB> db_;
  RunLoop loop_;
  std::unique_ptr<AsyncDB> async_;
};

TEST_P(ShardedAsyncTest, CoroutinesReadAndWriteAllShards) {
  const size_t times = Scaled(40);
  for (size_t round = 0; round < 2; ++round) {
    for (size_t worker = 0; worker < kWorkers; ++worker) loop_.Spawn(Work(worker, times));
    loop_.Run();
    EXPECT_EQ(async_->under_way(), 0u);
    // The shards are others afterwards.
    ASSERT_TRUE(IsOk(db_->SplitShard(db_->GetShards()[round].id, Low(kWorkers / 2 + round))));
  }
  std::string value;
  ASSERT_TRUE(IsOk(db_->Get({}, High(0), &value)));
  EXPECT_EQ(value, std::to_string(times));
}

TEST_P(ShardedAsyncTest, FailuresAreAnswered) {
  EXPECT_TRUE(db_->NewAsyncDB(nullptr, &async_).IsInvalidArgument());
  ASSERT_TRUE(IsOk(db_->NewAsyncDB(&loop_, &async_)));
  loop_.Spawn([](AsyncDB* async) -> Task<void> {
    PinnableSlice value;
    EXPECT_TRUE((co_await async->GetAsync({}, "none", &value)).IsNotFound());
    WriteBatch malformed("short");
    EXPECT_TRUE((co_await async->WriteAsync({}, &malformed)).IsCorruption());
  }(async_.get()));
  loop_.Run();
}

INSTANTIATE_TEST_SUITE_P(Nodes, ShardedAsyncTest,
                         testing::Values(NodeKind::kEmbedded, NodeKind::kTcpProcess),
                         [](const auto& kind) { return NameOf(kind.param); });

}  // namespace
}  // namespace nacre
