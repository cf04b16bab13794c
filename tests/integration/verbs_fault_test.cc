// Goal: over verbs, when a node is killed, when a node's or a client's host vanishes without a
// word, and when the link goes down: callers get Unavailable or TimedOut and never hang, nodes give
// back what a vanished client held, and later connections find all as it should be. Method: four
// nacre-memnode processes over the RDMA device that NACRE_TEST_VERBS_HOST names; the guest of
// tests/rdma_vm has one. Skipped elsewhere. KeptConnections says how a host vanishes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nacre/db.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "tests/support/process/kept_connections.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kNodes = 4;
constexpr char kTransportTimeout[] = "?timeout_ms=1000";
constexpr char kLongTransportTimeout[] = "?timeout_ms=4000";
constexpr milliseconds kOperationTimeout{3000};
/// The guest's processors are emulated: several times what any of it should take.
constexpr std::chrono::seconds kMostPatience{20};
constexpr size_t kKeys = 400;
/// Tables that outweigh log and manifest, so that all nodes get some.
constexpr size_t kValueBytes = 4000;

std::string Key(size_t i) { return "key" + std::to_string(i * 7919 % 10'007); }

bool IsLoss(const Status& status) { return status.IsUnavailable() || status.IsTimedOut(); }

class VerbsFaultTest : public testing::Test {
 protected:
  explicit VerbsFaultTest(std::string parameters = kTransportTimeout)
      : parameters_(std::move(parameters)) {}

  void SetUp() override {
    if (std::getenv("NACRE_TEST_VERBS_HOST") == nullptr) {
      GTEST_SKIP() << "no RDMA device named by NACRE_TEST_VERBS_HOST";
    }
    nodes_ = std::make_unique<MemnodeProcesses>(
        kNodes,
        MemnodeProcessOptions{.scheme = "verbs", .size = "64MiB", .parameters = parameters_});
    ASSERT_NO_FATAL_FAILURE(OpenDatabase());
  }
  void TearDown() override {
    if (nodes_ == nullptr) return;
    CloseDatabase();
    // Whatever happened: a new client can use all nodes.
    ASSERT_NO_FATAL_FAILURE(OpenDatabase());
    std::string value;
    for (size_t i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(IsOk(db_->Get({}, Key(i), &value)));
      ASSERT_EQ(value, TestValue(i, kValueBytes));
    }
    EXPECT_TRUE(IsOk(db_->Close()));
  }

  std::string pool_uri() const { return nodes_->pool_uri() + parameters_; }
  /// With all keys in tables.
  void OpenDatabase() {
    // A node may be in the middle of finding out that the last client is gone.
    const auto start = steady_clock::now();
    Status connected;
    do {
      pool::PoolOpenOptions options;
      options.operation_timeout = kOperationTimeout;
      options.slab_bytes = 1 << 20;
      connected = pool::OpenPool(pool_uri(), options, Clock::System(), &pool_);
    } while (!connected.ok() && steady_clock::now() - start < kMostPatience);
    ASSERT_TRUE(IsOk(connected));
    Options options = SmallTableOptions(pool_);
    options.operation_timeout = kOperationTimeout;
    // Many tables, which stay where they are: each node has some.
    options.disable_auto_compactions = true;
    options.level0_slowdown_writes_trigger = options.level0_stop_writes_trigger = 1000;
    ASSERT_TRUE(IsOk(DB::Open(options, "db" + std::to_string(++databases_), &db_)));
    for (size_t i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(IsOk(db_->Put(NoLog(), Key(i), TestValue(i, kValueBytes))));
      if (i % (kKeys / 10) == 0) {
        ASSERT_TRUE(IsOk(db_->Flush({})));
      }
    }
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }
  void CloseDatabase() {
    if (db_ != nullptr) {
      const Status closed = Timely([&] { return db_->Close(); });
      EXPECT_TRUE(closed.ok() || IsLoss(closed)) << closed.ToString();
    }
    db_.reset();
    pool_.reset();
  }

  /// The node that has most tables: log and manifest take room elsewhere.
  size_t Victim() {
    std::vector<int> tables(kNodes);
    const std::string all = GetTextProperty(db_.get(), "nacre.sstables");
    const std::string on = " on node ";
    for (size_t at = all.find(on); at != std::string::npos; at = all.find(on, at + 1)) {
      ++tables.at(std::stoul(all.substr(at + on.size())));
    }
    return static_cast<size_t>(std::max_element(tables.begin(), tables.end()) - tables.begin());
  }

  static Status Timely(const std::function<Status()>& call) {
    const auto start = steady_clock::now();
    Status status = call();
    EXPECT_LT(steady_clock::now() - start, kMostPatience);
    return status;
  }
  static bool Await(const std::function<bool()>& condition) {
    const auto start = steady_clock::now();
    while (!condition()) {
      if (steady_clock::now() - start > kMostPatience) return false;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return true;
  }
  /// Either right or lost.
  bool Find(size_t i) {
    std::string value;
    const Status status = Timely([&] { return db_->Get({}, Key(i), &value); });
    EXPECT_TRUE(status.ok() || IsLoss(status)) << status.ToString();
    if (status.ok()) {
      EXPECT_EQ(value, TestValue(i, kValueBytes));
    }
    return status.ok();
  }
  /// Threads that read, and one that writes, while `fault` takes place, and until each reader has
  /// met it.
  void UnderLoad(bool writes, const std::function<void()>& fault) {
    constexpr size_t kThreads = 4;
    std::atomic<bool> stop{false};
    std::atomic<size_t> failed{0};
    std::vector<std::thread> threads;
    for (size_t t = writes ? 0 : 1; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        bool met = false;
        for (size_t i = t; !stop.load(); i += kThreads) {
          bool found = true;
          if (t == 0) {
            const Status put = Timely([&] {
              return db_->Put(NoLog(), Key(i % kKeys), TestValue(i % kKeys, kValueBytes));
            });
            EXPECT_TRUE(put.ok() || IsLoss(put)) << put.ToString();
            found = put.ok();
            std::this_thread::sleep_for(milliseconds(2));  // Each write makes reads dearer.
          } else {
            found = Find(i % kKeys);
          }
          if (!found && !std::exchange(met, true)) failed.fetch_add(1);
        }
      });
    }
    std::this_thread::sleep_for(milliseconds(200));
    fault();
    EXPECT_TRUE(Await([&] { return failed.load() >= kThreads - 1; }));
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
  }
  static void SetLink(const std::string& state) {
    const char* const link = std::getenv("NACRE_TEST_VERBS_LINK");
    ASSERT_NE(link, nullptr);
    ASSERT_EQ(std::system(("ip link set " + std::string(link) + " " + state).c_str()), 0);
  }

  const std::string parameters_;
  std::unique_ptr<MemnodeProcesses> nodes_;
  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
  int databases_ = 0;
};

TEST_F(VerbsFaultTest, ANodeKilledUnderLoad) {
  const size_t victim = Victim();
  UnderLoad(true, [&] { (*nodes_)[victim].Kill(); });
  EXPECT_TRUE(Await([&] { return !pool_->client()->alive(static_cast<NodeId>(victim)); }));
  CloseDatabase();
  (*nodes_)[victim].Start();
}

TEST_F(VerbsFaultTest, ANodeThatVanishesUnderLoad) {
  const size_t victim = Victim();
  {
    const KeptConnections kept((*nodes_)[victim].pid());
    UnderLoad(true, [&] { (*nodes_)[victim].Kill(); });
    EXPECT_TRUE(Await([&] { return !pool_->client()->alive(static_cast<NodeId>(victim)); }));
    CloseDatabase();
  }
  (*nodes_)[victim].Start();
}

TEST_F(VerbsFaultTest, ANodeThatVanishesUnnoticedByAnyRequest) {
  const size_t victim = Victim();
  {
    const KeptConnections kept((*nodes_)[victim].pid());
    (*nodes_)[victim].Kill();
    EXPECT_TRUE(Await([&] { return !pool_->client()->alive(static_cast<NodeId>(victim)); }));
    size_t found = 0;
    for (size_t i = 0; i < kKeys; ++i) found += Find(i);
    EXPECT_GT(found, 0u);
    EXPECT_LT(found, kKeys);
    EXPECT_FALSE(pool_->client()->alive(static_cast<NodeId>(victim)));
    CloseDatabase();
  }
  (*nodes_)[victim].Start();
}

TEST_F(VerbsFaultTest, AClientThatVanishesGivesItsDatabaseBack) {
  // With slabs as large as db_bench wants them.
  MemnodeProcesses nodes(
      2,
      {.scheme = "verbs", .size = "256MiB", .slab_size = "64MiB", .parameters = kTransportTimeout});
  const std::string uri = nodes.pool_uri() + kTransportTimeout;
  std::shared_ptr<pool::PoolImpl> pool;
  ASSERT_TRUE(IsOk(pool::OpenPool(uri, {}, Clock::System(), &pool)));
  ChildProcess client("db_bench", {"--engine=nacre", "--pool=" + uri, "--db=theirs",
                                   "--num=10000000", "--benchmarks=fillseq"});
  const auto each_has_slabs = [&] {
    for (NodeId node = 0; node < 2; ++node) {
      pool::NodeStats stats;
      EXPECT_TRUE(IsOk(pool::GetStats(pool->client(), node, &stats)));
      if (stats.slabs_leased == 0) return false;
    }
    return true;
  };
  EXPECT_TRUE(Await(each_has_slabs));
  const KeptConnections kept(client.pid());
  client.Kill();
  // Another owner goes on with it once the nodes have noticed.
  Options options;
  options.pool = pool;
  std::unique_ptr<DB> theirs;
  Status opened;
  EXPECT_TRUE(Await([&] {
    opened = DB::Open(options, "theirs", &theirs);
    return !opened.IsBusy();
  }));
  ASSERT_TRUE(IsOk(opened));
  EXPECT_TRUE(IsOk(theirs->Put({}, "mine", "now")));
}

/// With time for a link to come back in.
class PatientVerbsFaultTest : public VerbsFaultTest {
 protected:
  PatientVerbsFaultTest() : VerbsFaultTest(kLongTransportTimeout) {}
};

TEST_F(PatientVerbsFaultTest, ALinkThatComesBackSoonHarmsNobodyWhoDoesNotUseIt) {
  SetLink("down");
  std::this_thread::sleep_for(milliseconds(300));
  SetLink("up");
  // The address's entries come back a moment after the link.
  std::this_thread::sleep_for(milliseconds(2000));
  std::string value;
  for (size_t i = 0; i < kKeys; ++i) ASSERT_TRUE(IsOk(db_->Get({}, Key(i), &value)));
}

TEST_F(VerbsFaultTest, ALinkThatIsDownForSeconds) {
  // Writes might need new connections; and a request to connect that is under way when the link
  // goes down is the last one that soft-RoCE ever sends.
  UnderLoad(false, [&] {
    SetLink("down");
    std::this_thread::sleep_for(milliseconds(3000));
  });
  // No call succeeds meanwhile, and each learns it in time.
  std::shared_ptr<pool::PoolImpl> other;
  pool::PoolOpenOptions options;
  options.operation_timeout = kOperationTimeout;
  EXPECT_TRUE(
      IsLoss(Timely([&] { return pool::OpenPool(pool_uri(), options, Clock::System(), &other); })));
  SetLink("up");
}

TEST_F(VerbsFaultTest, ALinkThatIsDownForSecondsWhileNothingIsAsked) {
  SetLink("down");
  EXPECT_TRUE(Await([&] {
    for (NodeId node = 0; node < kNodes; ++node) {
      if (pool_->client()->alive(node)) return false;
    }
    return true;
  }));
  for (size_t i = 0; i < 10; ++i) EXPECT_FALSE(Find(i));
  SetLink("up");
}

}  // namespace
}  // namespace nacre
