// Goal: a process may hold many databases: those that rest take no threads, and little room on the
// nodes; and databases with a home lie on as few nodes as their redundancy takes. Method: dozens of
// databases over one pool; the threads that the kernel knows, and what the nodes say.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/db.h"
#include "pool/reports.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

size_t ThreadsOfThisProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

/// Nodes that live and have slabs of some database.
std::vector<NodeId> NodesInUse(pool::PoolImpl* pool) {
  std::vector<NodeId> nodes;
  for (int i = 0; i < pool->client()->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    pool::NodeStats stats;
    if (!pool->client()->alive(node)) continue;
    EXPECT_TRUE(IsOk(pool::GetStats(pool->client(), node, &stats)));
    if (stats.slabs_leased > 0) nodes.push_back(node);
  }
  return nodes;
}

/// Two copies, at home.
Options HomeOptions(std::shared_ptr<Pool> pool) {
  Options options = SmallTableOptions(std::move(pool));
  options.redundancy = "rep(2)";
  options.home_nodes = true;
  return options;
}

class ManyDatabasesTest : public testing::Test {
 protected:
  void OpenAll(const Options& options, size_t count) {
    for (size_t i = databases_.size(); i < count; ++i) {
      std::unique_ptr<DB> db;
      ASSERT_TRUE(IsOk(DB::Open(options, "db" + std::to_string(i), &db)));
      databases_.push_back(std::move(db));
    }
  }
  void WriteAll(size_t keys, size_t value_bytes, const WriteOptions& how = {}) {
    for (size_t i = 0; i < databases_.size(); ++i) {
      for (size_t key = 0; key < keys; ++key) {
        ASSERT_TRUE(IsOk(
            databases_[i]->Put(how, std::to_string(key), TestValue(i * keys + key, value_bytes))));
      }
    }
  }
  void CheckAll(size_t keys, size_t value_bytes) {
    std::string value;
    for (size_t i = 0; i < databases_.size(); ++i) {
      for (size_t key = 0; key < keys; ++key) {
        ASSERT_TRUE(IsOk(databases_[i]->Get({}, std::to_string(key), &value)));
        ASSERT_EQ(value, TestValue(i * keys + key, value_bytes));
      }
    }
  }

  std::vector<std::unique_ptr<DB>> databases_;
};

TEST_F(ManyDatabasesTest, ThoseThatRestTakeFewThreadsAndLittleRoom) {
  constexpr size_t kDatabases = 64;
  const MemnodeProcesses nodes(6, {.scheme = "shm", .size = "256MiB", .slab_size = "256KiB"});
  TestPoolOptions pool_options;
  pool_options.slab_bytes = 256 << 10;
  // Where a node counts as slow, databases go to more nodes, and take more slabs.
  pool_options.slow_node_patience_max = {};
  const std::shared_ptr<pool::PoolImpl> pool = ConnectTestPool(nodes.pool_uri(), pool_options);
  ASSERT_NE(pool, nullptr);
  Options options;
  options.pool = pool;
  options.create_if_missing = true;
  options.redundancy = "rs(4,2)";
  options.slab_size = pool_options.slab_bytes;
  const auto jobs = static_cast<size_t>(options.max_background_jobs);
  const size_t without = ThreadsOfThisProcess();
  ASSERT_NO_FATAL_FAILURE(OpenAll(options, kDatabases));
  ASSERT_NO_FATAL_FAILURE(WriteAll(100, 100));
  for (const std::unique_ptr<DB>& db : databases_) ASSERT_TRUE(IsOk(db->Flush({})));
  // Where the machine has time there are fewer than 16; where it has none, each kind of work has as
  // many as it may have at a time (pool/background.h).
  constexpr size_t kAtATime = 32;
  EXPECT_TRUE(Eventually([&] { return ThreadsOfThisProcess() <= without + kAtATime + jobs; }))
      << ThreadsOfThisProcess() << " threads, " << without << " without databases";
  const auto leased = [&] {
    return SumOverNodes(pool.get(), &pool::NodeStats::slabs_leased) * options.slab_size;
  };
  EXPECT_TRUE(Eventually([&] { return leased() < uint64_t{256} << 20; })) << leased();
  CheckAll(100, 100);
  databases_.clear();
}

TEST_F(ManyDatabasesTest, AHomeIsOfAsManyNodesAsTheRedundancyTakes) {
  const std::shared_ptr<pool::PoolImpl> pool = OpenTestPool({.nodes = 6});
  ASSERT_NE(pool, nullptr);
  const Options options = HomeOptions(pool);
  ASSERT_NO_FATAL_FAILURE(OpenAll(options, 1));
  ASSERT_NO_FATAL_FAILURE(WriteAll(5000, 1000, NoLog()));
  ASSERT_TRUE(IsOk(databases_[0]->CompactRange({}, nullptr, nullptr)));
  const std::vector<NodeId> home = NodesInUse(pool.get());
  EXPECT_EQ(home.size(), 2u);
  CheckAll(5000, 1000);
  // Where it was it stays, though others have more room.
  databases_.clear();
  ASSERT_NO_FATAL_FAILURE(OpenAll(options, 1));
  ASSERT_NO_FATAL_FAILURE(WriteAll(5000, 1000, NoLog()));
  EXPECT_EQ(NodesInUse(pool.get()), home);
}

TEST_F(ManyDatabasesTest, AHomeThatLosesANodeMoves) {
  const std::shared_ptr<pool::PoolImpl> pool = OpenTestPool({.nodes = 6});
  ASSERT_NE(pool, nullptr);
  const Options options = HomeOptions(pool);
  ASSERT_NO_FATAL_FAILURE(OpenAll(options, 1));
  ASSERT_NO_FATAL_FAILURE(WriteAll(5000, 1000, NoLog()));
  const std::vector<NodeId> home = NodesInUse(pool.get());
  ASSERT_EQ(home.size(), 2u);
  pool->KillEmbeddedNode(home[0]);
  ASSERT_TRUE(Eventually([&] { return !pool->client()->alive(home[0]); }));
  ASSERT_TRUE(
      Eventually([&] { return GetNumber(databases_[0].get(), "nacre.repair.tables-left") == 0; }));
  ASSERT_NO_FATAL_FAILURE(WriteAll(5000, 1000, NoLog()));
  ASSERT_TRUE(IsOk(databases_[0]->CompactRange({}, nullptr, nullptr)));
  CheckAll(5000, 1000);
  // The one that is left, and mostly one in place of the other: repairs spread what they make.
  const std::vector<NodeId> now = NodesInUse(pool.get());
  EXPECT_EQ(std::count(now.begin(), now.end(), home[1]), 1);
}

}  // namespace
}  // namespace nacre
