// Goal: when the network drops packets, in both directions or in one, callers get Unavailable or
// TimedOut and never hang, what others hold goes on, nothing leaks, and once the network is whole
// again the node is reached again. Method: nacre-memnode processes over tcp in a network namespace
// of the test's own, whose packets nftables drops. Transport timeout and operation timeout are
// short; what is checked is that calls return, long before a user would call it a hang.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "pool/connect/lane.h"
#include "pool/read/point_reader.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/private_network.h"
#include "tests/support/process/process_usage.h"
#include "tests/support/scale.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr char kPartitionTransportTimeout[] = "?timeout_ms=300";
constexpr milliseconds kPartitionOperationTimeout{1000};
constexpr std::chrono::seconds kPartitionPatience{15};
constexpr size_t kPartitionValueBytes = 300;

constexpr std::array kWays = {DroppedPackets::Way::kBoth, DroppedPackets::Way::kToPort,
                              DroppedPackets::Way::kFromPort};

std::string PartitionKey(size_t i) { return "key" + std::to_string(i * 7919 % 100'003); }

bool IsPartition(const Status& status) { return status.IsUnavailable() || status.IsTimedOut(); }

class PartitionTest : public testing::Test {
 protected:
  /// The pool of nodes that are there in a test that runs in its private network.
  void StartNodes(int count) {
    nodes_ = std::make_unique<MemnodeProcesses>(
        count, MemnodeProcessOptions{
                   .scheme = "tcp", .size = "128MiB", .parameters = kPartitionTransportTimeout});
    pool_ = OpenPool();
    ASSERT_NE(pool_, nullptr);
  }
  std::shared_ptr<pool::PoolImpl> OpenPool() {
    return ConnectTestPool(nodes_->pool_uri() + kPartitionTransportTimeout,
                           {.operation_timeout = kPartitionOperationTimeout});
  }
  uint16_t Port(NodeId node) {
    const std::string& address = (*nodes_)[node].address();
    return static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }
  Status Timely(const std::function<Status()>& call) {
    const auto start = steady_clock::now();
    Status status = call();
    EXPECT_LT(steady_clock::now() - start, kPartitionPatience);
    return status;
  }
  /// A read of the node's first bytes.
  static Status ReadOnce(pool::PoolImpl* pool, NodeId node) {
    pool::PointRead read;
    read.from = {.offset = 0, .node = node};
    read.length = 64;
    pool::PointReader reader(pool->client()->point_sessions());
    reader.ReadAll({&read, 1});
    return read.status;
  }
  /// Until `call` succeeds, for as long as anybody would wait.
  static testing::AssertionResult InTheEnd(const std::function<Status()>& call) {
    const auto start = steady_clock::now();
    Status status = call();
    while (!status.ok() && steady_clock::now() - start < kPartitionPatience) {
      std::this_thread::sleep_for(milliseconds(5));
      status = call();
    }
    return IsOk(status);
  }

  std::unique_ptr<MemnodeProcesses> nodes_;
  std::shared_ptr<pool::PoolImpl> pool_;
};

#define NACRE_IN_PRIVATE_NETWORK()                                  \
  std::string why;                                                  \
  const PrivateNetwork network = EnterPrivateNetwork(&why);         \
  if (network == PrivateNetwork::kUnavailable) GTEST_SKIP() << why; \
  if (network == PrivateNetwork::kDone) return

TEST_F(PartitionTest, CallersLearnOfItAndReachTheNodeAfterwards) {
  NACRE_IN_PRIVATE_NETWORK();
  ASSERT_NO_FATAL_FAILURE(StartNodes(2));
  for (const auto way : kWays) {
    ASSERT_TRUE(InTheEnd([&] { return pool_->client()->Ping(1); }));
    ASSERT_TRUE(InTheEnd([&] { return ReadOnce(pool_.get(), 1); }));
    std::atomic<bool> stop{false};
    std::atomic<int> cut_off{0};
    std::vector<std::thread> readers;
    for (int t = 0; t < 8; ++t) {
      readers.emplace_back([&, t] {
        bool failed = false;
        while (!stop.load()) {
          const Status status = Timely(
              [&] { return t % 2 == 0 ? ReadOnce(pool_.get(), 1) : pool_->client()->Ping(1); });
          EXPECT_TRUE(status.ok() || IsPartition(status)) << status.ToString();
          if (!status.ok() && !failed) cut_off.fetch_add(1);
          failed = failed || !status.ok();
          std::this_thread::yield();
        }
      });
    }
    {
      const DroppedPackets dropped(Port(1), way);
      const auto start = steady_clock::now();
      while (cut_off.load() < 8 && steady_clock::now() - start < kPartitionPatience) {
        // Meanwhile the other node serves.
        EXPECT_TRUE(IsOk(ReadOnce(pool_.get(), 0)));
        EXPECT_TRUE(IsOk(pool_->client()->Ping(0)));
        std::this_thread::sleep_for(milliseconds(1));
      }
      EXPECT_EQ(cut_off.load(), 8);
      EXPECT_TRUE(IsPartition(Timely([&] { return pool_->client()->Ping(1); })));
      EXPECT_TRUE(IsPartition(Timely([&] { return ReadOnce(pool_.get(), 1); })));
    }
    stop.store(true);
    for (std::thread& reader : readers) reader.join();
    EXPECT_TRUE(InTheEnd([&] { return pool_->client()->Ping(1); }));
    EXPECT_TRUE(InTheEnd([&] { return ReadOnce(pool_.get(), 1); }));
  }
}

TEST_F(PartitionTest, ANewPoolDoesWithoutWhomItCannotReach) {
  NACRE_IN_PRIVATE_NETWORK();
  ASSERT_NO_FATAL_FAILURE(StartNodes(2));
  std::shared_ptr<pool::PoolImpl> pool;
  const auto open = [&] {
    pool::PoolOpenOptions options;
    options.operation_timeout = kPartitionOperationTimeout;
    options.slab_bytes = 1 << 20;
    pool.reset();
    return pool::OpenPool(nodes_->pool_uri() + kPartitionTransportTimeout, options, Clock::System(),
                          &pool);
  };
  for (const auto way : kWays) {
    {
      const DroppedPackets dropped(Port(0), way);
      ASSERT_TRUE(IsOk(Timely(open)));
      EXPECT_FALSE(pool->client()->alive(0));
      EXPECT_TRUE(pool->client()->alive(1));
    }
    EXPECT_TRUE(InTheEnd([&] {
      NACRE_RETURN_IF_ERROR(open());
      return pool->client()->alive(0) ? Status::OK() : Status::Unavailable("not reached");
    }));
  }
}

TEST_F(PartitionTest, NothingIsLeft) {
  NACRE_IN_PRIVATE_NETWORK();
  ASSERT_NO_FATAL_FAILURE(StartNodes(2));
  const auto use = [&] {
    for (const NodeId node : {NodeId{0}, NodeId{1}}) {
      NACRE_RETURN_IF_ERROR(ReadOnce(pool_.get(), node));
      NACRE_RETURN_IF_ERROR(pool_->client()->Ping(node));
    }
    return Status::OK();
  };
  ASSERT_TRUE(InTheEnd(use));
  const ProcessUsage own = UsageAtRest(getpid());
  const ProcessUsage theirs = UsageAtRest((*nodes_)[1].pid());
  const size_t rounds = Scaled(8);
  for (size_t round = 0; round < rounds; ++round) {
    {
      const DroppedPackets dropped(Port(1), kWays[round % kWays.size()]);
      while (Timely([&] { return ReadOnce(pool_.get(), 1); }).ok()) {
      }
      EXPECT_TRUE(IsPartition(Timely([&] { return pool_->client()->Ping(1); })));
    }
    ASSERT_TRUE(InTheEnd(use));
  }
  const ProcessUsage own_after = AwaitUsage(getpid(), own);
  EXPECT_TRUE(own_after.Within(own)) << "before: " << own << "\nafter: " << own_after;
  const ProcessUsage after = AwaitUsage((*nodes_)[1].pid(), theirs);
  EXPECT_TRUE(after.Within(theirs)) << "before: " << theirs << "\nafter: " << after;
}

TEST_F(PartitionTest, ADatabaseWithCopiesGoesOn) {
  NACRE_IN_PRIVATE_NETWORK();
  ASSERT_NO_FATAL_FAILURE(StartNodes(3));
  Options options = SmallTableOptions(pool_);
  options.redundancy = "rep(2)";
  options.operation_timeout = kPartitionOperationTimeout;
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
  const size_t keys = Scaled(6000);
  const auto fill = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      ASSERT_TRUE(IsOk(Timely([&] {
        return db->Put(NoLog(), PartitionKey(i), TestValue(i, kPartitionValueBytes));
      }))) << i;
    }
  };
  const auto expect_all = [&](size_t end) {
    std::string value;
    for (size_t i = 0; i < end; ++i) {
      ASSERT_TRUE(IsOk(Timely([&] { return db->Get({}, PartitionKey(i), &value); }))) << i;
      ASSERT_EQ(value, TestValue(i, kPartitionValueBytes));
    }
  };
  ASSERT_NO_FATAL_FAILURE(fill(0, keys));
  ASSERT_TRUE(IsOk(db->Flush({})));
  {
    const DroppedPackets dropped(Port(1), DroppedPackets::Way::kBoth);
    ASSERT_NO_FATAL_FAILURE(expect_all(keys));
    ASSERT_NO_FATAL_FAILURE(fill(keys, 2 * keys));
    ASSERT_TRUE(IsOk(Timely([&] { return db->Flush({}); })));
    ASSERT_NO_FATAL_FAILURE(expect_all(2 * keys));
    // It lasts until the owner gives the node up; a partition that ends before does no harm.
    const pool::NodeLink* node = pool_->client()->fabric()->link(1);
    for (int i = 0; i < 1500 && !node->cut_off(); ++i) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    ASSERT_TRUE(node->cut_off());
  }
  // The node comes back, as what it was.
  EXPECT_TRUE(Eventually([&] { return pool_->client()->alive(1); }));
  EXPECT_EQ(pool_->client()->node_count(), 3);
  ASSERT_NO_FATAL_FAILURE(expect_all(2 * keys));
  ASSERT_NO_FATAL_FAILURE(fill(2 * keys, 3 * keys));
  ASSERT_TRUE(IsOk(db->Flush({})));
  ASSERT_NO_FATAL_FAILURE(expect_all(3 * keys));
  EXPECT_TRUE(IsOk(db->Close()));
  db.reset();
  options.pool.reset();
  pool_ = OpenPool();
  ASSERT_NE(pool_, nullptr);
  for (NodeId node = 0; node < 3; ++node) EXPECT_TRUE(IsOk(pool_->client()->Ping(node)));
  options.pool = pool_;
  ASSERT_TRUE(IsOk(DB::Open(options, "next", &db)));
  ASSERT_NO_FATAL_FAILURE(fill(0, keys));
  ASSERT_TRUE(IsOk(db->Flush({})));
  ASSERT_NO_FATAL_FAILURE(expect_all(keys));
  EXPECT_TRUE(IsOk(db->Close()));
}

TEST_F(PartitionTest, ADatabaseWithoutCopiesSaysWhatItCannotReach) {
  NACRE_IN_PRIVATE_NETWORK();
  ASSERT_NO_FATAL_FAILURE(StartNodes(2));
  Options options = SmallTableOptions(pool_);
  options.operation_timeout = kPartitionOperationTimeout;
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
  const size_t keys = Scaled(6000);
  for (size_t i = 0; i < keys; ++i) {
    ASSERT_TRUE(IsOk(db->Put(NoLog(), PartitionKey(i), TestValue(i, kPartitionValueBytes))));
  }
  ASSERT_TRUE(IsOk(db->Flush({})));
  std::string value;
  {
    const DroppedPackets dropped(Port(1), DroppedPackets::Way::kBoth);
    size_t found = 0;
    for (size_t i = 0; i < keys; ++i) {
      const Status status = Timely([&] { return db->Get({}, PartitionKey(i), &value); });
      ASSERT_TRUE(status.ok() || IsPartition(status)) << status.ToString();
      if (!status.ok()) continue;
      ++found;
      ASSERT_EQ(value, TestValue(i, kPartitionValueBytes));
    }
    EXPECT_GT(found, 0u);
    EXPECT_LT(found, keys);
    const pool::NodeLink* node = pool_->client()->fabric()->link(1);
    ASSERT_TRUE(Eventually([&] { return node->cut_off(); }));
  }
  // Nothing is lost with a connection: the node is there again, with what it has.
  ASSERT_TRUE(Eventually([&] { return pool_->client()->alive(1); }));
  for (size_t i = 0; i < keys; ++i) {
    // Its connections are made anew with some back-off.
    ASSERT_TRUE(Eventually([&] { return db->Get({}, PartitionKey(i), &value).ok(); })) << i;
    ASSERT_EQ(value, TestValue(i, kPartitionValueBytes));
  }
  EXPECT_TRUE(IsOk(db->Close()));
}

}  // namespace
}  // namespace nacre
