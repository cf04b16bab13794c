// Goal: nodes that die, over and over, leave nothing behind in those that live: no descriptor, no
// thread, no connection, no mapping; callers get Unavailable, and reach the new node afterwards.
// Method: two nacre-memnode processes; fifty rounds of opening the pool, working, kill -9 of
// one node amid the work, closing, and starting it again. What /proc tells of this process and of
// the node that lives is compared between an early round and the last one.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "nacre/db.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/process_usage.h"
#include "tests/support/scale.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

constexpr size_t kLeakKeys = 600;
constexpr size_t kLeakValueBytes = 400;
/// By then a node that compacts has met more pools than it remembers.
constexpr size_t kWarmRounds = 14;
/// Slack for a node that compacts: it keeps the connections of its last jobs' pools, some with more
/// of them than others. A leak would add one in each round.
constexpr size_t kPeerSlack = 30;

std::string LeakKey(size_t i) { return "key" + std::to_string(i * 7919 % 10'007); }

class LeakTest : public testing::TestWithParam<std::tuple<std::string, CompactionSite>> {
 protected:
  static constexpr size_t kSurvivor = 0;
  static constexpr size_t kVictim = 1;

  LeakTest()
      : nodes_(2, MemnodeProcessOptions{.scheme = scheme(), .size = IsVerbs() ? "64MiB" : "1GiB"}) {
  }

  static std::string scheme() { return std::get<0>(GetParam()); }
  /// All of a node's memory is pinned then, and emulated.
  static bool IsVerbs() { return scheme() == "verbs"; }
  static CompactionSite site() { return std::get<1>(GetParam()); }

  /// Either the value or Unavailable.
  static void Read(DB* db, size_t i) {
    std::string value;
    const Status status = db->Get({}, LeakKey(i), &value);
    if (status.ok()) {
      EXPECT_EQ(value, TestValue(i, kLeakValueBytes));
    } else {
      EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
    }
  }

  void Round(size_t number) {
    std::shared_ptr<pool::PoolImpl> pool = ConnectTestPool(nodes_.pool_uri());
    ASSERT_NE(pool, nullptr);
    Options options = SmallTableOptions(pool);
    options.compaction = site();
    options.write_buffer_size = 64 << 10;
    std::unique_ptr<DB> db;
    // A new one each time: of the last one parts are lost.
    ASSERT_TRUE(IsOk(DB::Open(options, "db" + std::to_string(number), &db)));
    for (size_t i = 0; i < kLeakKeys; ++i) {
      ASSERT_TRUE(IsOk(db->Put(NoLog(), LeakKey(i), TestValue(i, kLeakValueBytes))));
    }
    ASSERT_TRUE(IsOk(db->Flush({})));
    std::atomic<bool> stop{false};
    std::vector<std::thread> readers;
    for (size_t t = 0; t < 2; ++t) {
      readers.emplace_back([&, t] {
        for (size_t i = t; !stop.load(std::memory_order_relaxed); i++)
          Read(db.get(), i % kLeakKeys);
      });
    }
    const Status compacted = number % 2 == 0 ? db->CompactRange({}, nullptr, nullptr) : Status();
    EXPECT_TRUE(IsOk(compacted));
    nodes_[kVictim].Kill();
    for (size_t i = 0; i < kLeakKeys; ++i) Read(db.get(), i);
    stop.store(true);
    for (std::thread& reader : readers) reader.join();
    const Status closed = db->Close();
    EXPECT_TRUE(closed.ok() || closed.IsUnavailable()) << closed.ToString();
    db.reset();
    pool.reset();
    nodes_[kVictim].Start();
  }

  MemnodeProcesses nodes_;
};

std::string NameOf(const testing::TestParamInfo<std::tuple<std::string, CompactionSite>>& info) {
  const bool on_nodes = std::get<1>(info.param) == CompactionSite::kAuto;
  return std::get<0>(info.param) + (on_nodes ? "_nodes_compact" : "_client_compacts");
}

INSTANTIATE_TEST_SUITE_P(Schemes, LeakTest,
                         testing::Combine(testing::ValuesIn(ProcessSchemes()),
                                          testing::Values(CompactionSite::kCompute,
                                                          CompactionSite::kAuto)),
                         NameOf);

TEST_P(LeakTest, NodesThatDieAgainAndAgain) {
  const size_t rounds = kWarmRounds + Scaled(8);
  const pid_t survivor = nodes_[kSurvivor].pid();
  ProcessUsage own;
  ProcessUsage theirs;
  for (size_t round = 0; round < rounds; ++round) {
    if (round == kWarmRounds) {
      own = UsageAtRest(getpid());
      theirs = UsageAtRest(survivor);
    }
    ASSERT_NO_FATAL_FAILURE(Round(round));
  }
  const ProcessUsage own_after = AwaitUsage(getpid(), own);
  EXPECT_TRUE(own_after.Within(own)) << "before: " << own << "\nafter: " << own_after;
  if (site() == CompactionSite::kAuto) {
    theirs.descriptors += kPeerSlack;
    theirs.sockets += kPeerSlack;
    theirs.threads += kPeerSlack;
    theirs.shared_mappings += kPeerSlack;
    theirs.rdma_resources += kPeerSlack * 4;  // Queue pair, region, completion queue, connection.
  }
  const ProcessUsage after = AwaitUsage(survivor, theirs);
  EXPECT_TRUE(after.Within(theirs)) << "before: " << theirs << "\nafter: " << after;

  // The survivor has the connections of this request in the end: a lifeline, and the request's own.
  const std::shared_ptr<pool::PoolImpl> pool = ConnectTestPool(nodes_.pool_uri());
  ASSERT_NE(pool, nullptr);
  pool::NodeStats stats;
  for (int look = 0; look < 1000 && stats.connections != 2; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(IsOk(pool::GetStats(pool->client(), kSurvivor, &stats)));
  }
  EXPECT_EQ(stats.connections, 2u);
}

}  // namespace
}  // namespace nacre
