// Goal: many threads against one node, and one client against many nodes, work and find what they
// wrote; and all that this takes, at both ends, is given back.
// Method: nacre-memnode processes; keys whose values are known; what /proc tells of the processes
// after a first use, which may leave things for good, and after a second one.

#include "tests/support/scale.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/process_usage.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr size_t kScaleValueBytes = 300;
constexpr size_t kKeysAtOnce = 32;

std::string ScaleKey(size_t i) { return "key" + std::to_string(i * 7919 % 1'000'003); }

class ScaleTest : public testing::TestWithParam<std::string> {
 protected:
  void Start(int nodes, const std::string& size) {
    nodes_ = std::make_unique<MemnodeProcesses>(
        nodes, MemnodeProcessOptions{.scheme = GetParam(), .size = size});
  }

  /// Runs `work` with a database of its own, twice.
  void UseTwice(const std::function<void(DB*)>& work) {
    Use("first", work);
    const ProcessUsage own = UsageAtRest(getpid());
    std::vector<ProcessUsage> theirs;
    for (size_t i = 0; i < nodes_->size(); ++i) theirs.push_back(UsageAtRest(Node(i)));
    Use("second", work);
    const ProcessUsage own_after = AwaitUsage(getpid(), own);
    EXPECT_TRUE(own_after.Within(own)) << "before: " << own << "\nafter: " << own_after;
    for (size_t i = 0; i < nodes_->size(); ++i) {
      const ProcessUsage after = AwaitUsage(Node(i), theirs[i]);
      EXPECT_TRUE(after.Within(theirs[i])) << "before: " << theirs[i] << "\nafter: " << after;
    }
  }
  pid_t Node(size_t i) { return (*nodes_)[i].pid(); }

  std::shared_ptr<pool::PoolImpl> pool_;  ///< While `work` is run.

 private:
  void Use(const std::string& name, const std::function<void(DB*)>& work) {
    pool_ = ConnectTestPool(nodes_->pool_uri());
    ASSERT_NE(pool_, nullptr);
    Options options = SmallTableOptions(pool_);
    // Nodes that compact keep the connections to those of the others that they have needed so far,
    // so that it would not be known what they are to have in the end.
    if (nodes_->size() > 1) options.compaction = CompactionSite::kCompute;
    std::unique_ptr<DB> db;
    ASSERT_TRUE(IsOk(DB::Open(options, name, &db)));
    work(db.get());
    EXPECT_TRUE(IsOk(db->Close()));
    db.reset();
    pool_.reset();
  }

  std::unique_ptr<MemnodeProcesses> nodes_;
};

INSTANTIATE_TEST_SUITE_P(Schemes, ScaleTest, testing::ValuesIn(ProcessSchemes()),
                         [](const auto& scheme) { return scheme.param; });

/// Puts `keys` keys from number `begin` on, and finds them, one by one and many at once, before and
/// after they are in tables.
void PutAndFind(DB* db, size_t begin, size_t keys, Random* random) {
  for (size_t i = begin; i < begin + keys; ++i) {
    ASSERT_TRUE(IsOk(db->Put(NoLog(), ScaleKey(i), TestValue(i, kScaleValueBytes))));
  }
  std::string value;
  for (size_t round = 0; round < keys; ++round) {
    const size_t i = begin + random->Uniform(keys);
    ASSERT_TRUE(IsOk(db->Get({}, ScaleKey(i), &value)));
    ASSERT_EQ(value, TestValue(i, kScaleValueBytes));
  }
  std::vector<std::string> values;
  for (size_t round = 0; round * kKeysAtOnce < keys; ++round) {
    std::vector<size_t> numbers;
    std::vector<std::string> names;
    for (size_t k = 0; k < kKeysAtOnce; ++k) {
      numbers.push_back(begin + random->Uniform(keys));
      names.push_back(ScaleKey(numbers.back()));
    }
    names.back() += "absent";
    const std::vector<Status> statuses =
        db->MultiGet({}, std::vector<Slice>(names.begin(), names.end()), &values);
    for (size_t k = 0; k + 1 < kKeysAtOnce; ++k) {
      ASSERT_TRUE(IsOk(statuses[k]));
      ASSERT_EQ(values[k], TestValue(numbers[k], kScaleValueBytes));
    }
    ASSERT_TRUE(statuses.back().IsNotFound()) << statuses.back().ToString();
  }
}

/// How many of the keys from 0 on hold their values.
size_t CountFound(DB* db, size_t keys) {
  size_t found = 0;
  const std::unique_ptr<Iterator> iterator = db->NewIterator({});
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++found;
  EXPECT_TRUE(IsOk(iterator->status()));
  EXPECT_EQ(found, keys);
  std::string value;
  size_t right = 0;
  for (size_t i = 0; i < keys; ++i) {
    right += db->Get({}, ScaleKey(i), &value).ok() && value == TestValue(i, kScaleValueBytes);
  }
  return right;
}

TEST_P(ScaleTest, SixtyFourThreadsAndOneNode) {
  constexpr size_t kThreads = 64;
  const size_t keys = Scaled(400);
  const uint64_t seed = TestSeed(6401);
  ASSERT_NO_FATAL_FAILURE(Start(1, "256MiB"));
  UseTwice([&](DB* db) {
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        Random random(seed + t);
        PutAndFind(db, t * keys, keys, &random);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(IsOk(db->Flush({})));
    // Everything is in tables now: each thread reads from the node what others wrote.
    threads.clear();
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        Random random(seed + kThreads + t);
        std::string value;
        for (size_t round = 0; round < keys; ++round) {
          const size_t i = random.Uniform(kThreads * keys);
          ASSERT_TRUE(IsOk(db->Get({}, ScaleKey(i), &value)));
          ASSERT_EQ(value, TestValue(i, kScaleValueBytes));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(CountFound(db, kThreads * keys), kThreads * keys);
    pool::NodeStats stats;
    ASSERT_TRUE(IsOk(pool::GetStats(pool_->client(), 0, &stats)));
    // One for each thread that reads, at least, while they last.
    RecordProperty("connections", std::to_string(stats.connections));
    // A client that has given up a connection to a busy node counts as one that was refused.
    EXPECT_EQ(stats.frames_malformed + stats.requests_malformed, 0u);
  });
}

TEST_P(ScaleTest, OneClientAndSixteenNodes) {
  constexpr int kNodes = 16;
  const size_t keys = std::max<size_t>(Scaled(12'000), 2400);  // Tables for each node.
  const uint64_t seed = TestSeed(1601);
  ASSERT_NO_FATAL_FAILURE(Start(kNodes, "64MiB"));
  UseTwice([&](DB* db) {
    Random random(seed);
    PutAndFind(db, 0, keys, &random);
    ASSERT_TRUE(IsOk(db->Flush({})));
    ASSERT_TRUE(IsOk(db->WaitForCompact()));
    EXPECT_EQ(CountFound(db, keys), keys);
    for (NodeId node = 0; node < kNodes; ++node) {
      pool::NodeStats stats;
      ASSERT_TRUE(IsOk(pool::GetStats(pool_->client(), node, &stats)));
      EXPECT_GT(stats.slabs_leased, 0u) << "node " << node << " holds nothing";
      // A client that has given up a connection to a busy node counts as one that was refused.
      EXPECT_EQ(stats.frames_malformed + stats.requests_malformed, 0u);
    }
  });
}

}  // namespace
}  // namespace nacre
