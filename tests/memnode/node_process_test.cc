// Goal: real nacre-memnode processes, their command lines, their deaths, and the deaths of their
// clients. Method: start the binaries, kill -9 in the middle of things; nothing may hang, and what
// other nodes hold stays as it was.

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "jobs/job_client.h"
#include "pool/databases.h"
#include "pool/read/point_reader.h"
#include "pool/reports.h"
#include "pool/space/slab_leases.h"
#include "pool/wire/node_stats.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr milliseconds kTimeout{20'000};
/// The transport tells of a death: no call waits for the timeout.
constexpr seconds kWellBeforeTheTimeout{15};

class NodeProcessTest : public PoolFixture {
 protected:
  void OpenNodes(int count, const MemnodeProcessOptions& options = {}) {
    nodes_ = std::make_unique<MemnodeProcesses>(count, options);
    OpenPoolAt(nodes_->pool_uri(), 1 << 20, kTimeout);
    CreateDatabase();
  }
  void TearDown() override { ClosePool(); }

  static void ExpectNames(const Status& s, const std::string& what) {
    EXPECT_NE(s.ToString().find(what), std::string::npos) << s.ToString();
  }

  std::unique_ptr<MemnodeProcesses> nodes_;
};

TEST_F(NodeProcessTest, WritesReadsAndStops) {
  const uint64_t seed = TestSeed(801);
  OpenNodes(2);
  const std::string bytes = RandomBytes(seed, 500'000);
  Placement placement;
  ASSERT_TRUE(space_->Reserve(Copies(2), bytes.size(), kNoNode, &placement).ok());
  ASSERT_TRUE(WriteBytes(placement, bytes).ok());
  for (const int copy : {0, 1}) {
    PointRead read;
    read.from = store_->Resolve(placement, 1234, copy);
    read.length = 777;
    PointReader reader(client_->point_sessions());
    reader.ReadAll(std::span<PointRead>(&read, 1));
    ASSERT_TRUE(read.status.ok()) << read.status.ToString();
    EXPECT_EQ(std::memcmp(read.data, bytes.data() + 1234, 777), 0);
  }
  // A second owner in this process, and two owners of one name.
  PoolOpenOptions options;
  options.slab_bytes = slab_bytes_;
  std::shared_ptr<PoolImpl> second;
  ASSERT_TRUE(OpenPool(nodes_->pool_uri(), options, Clock::System(), &second).ok());
  DatabaseLease lease;
  EXPECT_TRUE(
      second->client()->databases()->Open("db", {.create_if_missing = true}, &lease).IsBusy());
  EXPECT_TRUE(second->client()->databases()->Open("db2", {.create_if_missing = true}, &lease).ok());
  options.slab_bytes = 2 << 20;
  EXPECT_TRUE(OpenPool(nodes_->pool_uri(), options, Clock::System(), &second).IsInvalidArgument());
  second.reset();

  EXPECT_EQ((*nodes_)[0].Terminate(), 0);
  EXPECT_FALSE(std::filesystem::exists((*nodes_)[0].socket_path()));
  const Status s = client_->Ping(0);
  EXPECT_TRUE(s.IsUnavailable()) << s.ToString();
  ExpectNames(s, (*nodes_)[0].address());
  EXPECT_TRUE(client_->Ping(1).ok());
}

TEST(NodeMemoryTest, IsTakenAtTheStartIfAskedFor) {
  constexpr size_t kSize = 32 << 20;
  for (const bool populate : {false, true}) {
    const MemnodeProcess node(
        {.size = std::to_string(kSize), .slab_size = "1MiB", .populate = populate});
    std::ifstream status("/proc/" + std::to_string(node.pid()) + "/status");
    size_t shared_kib = 0;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("RssShmem:")) shared_kib = std::stoul(line.substr(9));
    }
    EXPECT_EQ(shared_kib << 10 >= kSize, populate) << shared_kib << " KiB";
  }
}

TEST_F(NodeProcessTest, KilledInTheMiddleOfReads) {
  const uint64_t seed = TestSeed(802);
  OpenNodes(3);
  const std::string bytes = RandomBytes(seed, 2'000'000);
  Placement one;
  Placement two;
  ASSERT_TRUE(space_->Reserve(Copies(1), bytes.size(), 1, &one).ok());
  ASSERT_TRUE(space_->Reserve(Copies(2), bytes.size(), 1, &two).ok());
  ASSERT_TRUE(WriteBytes(one, bytes).ok());
  ASSERT_TRUE(WriteBytes(two, bytes).ok());

  std::atomic<int> wrong{0};
  std::atomic<int> unavailable{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (uint64_t t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      Random random(seed + t);
      const std::shared_ptr<Extent> extent = store_->OpenExtent(1, two, bytes.size());
      while (!stop) {
        // With a second copy every read succeeds, the ones in flight at the death too.
        const uint64_t offset = random.Uniform(bytes.size() - 50'000);
        Slice got;
        const auto pending = extent->StartRead(offset, 50'000);
        const Status s = pending->Await(&got);
        if (!s.ok() || std::memcmp(got.data(), bytes.data() + offset, 50'000) != 0) ++wrong;

        std::vector<PointRead> reads(8);
        for (PointRead& read : reads) {
          read.from = one.fragments[0].start;
          read.from.offset = read.from.offset + kFragmentHeadBytes + offset;
          read.length = 300;
        }
        PointReader reader(client_->point_sessions());
        reader.ReadAll(reads);
        for (const PointRead& read : reads) {
          if (read.status.ok()) {
            if (std::memcmp(read.data, bytes.data() + offset, 300) != 0) ++wrong;
          } else if (read.status.IsUnavailable()) {
            ++unavailable;
          } else {
            ++wrong;
          }
        }
      }
    });
  }
  std::this_thread::sleep_for(milliseconds(50));
  const auto start = steady_clock::now();
  (*nodes_)[1].Kill();
  while (unavailable == 0 && steady_clock::now() - start < kWellBeforeTheTimeout) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  std::this_thread::sleep_for(milliseconds(50));
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(unavailable, 0);
  EXPECT_LT(steady_clock::now() - start, kWellBeforeTheTimeout);
  EXPECT_FALSE(client_->alive(1));
}

TEST_F(NodeProcessTest, KilledInTheMiddleOfWrites) {
  const uint64_t seed = TestSeed(803);
  OpenNodes(3);
  const std::string bytes = RandomBytes(seed, 3'000'000);
  std::vector<Placement> written;
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(30));
    (*nodes_)[2].Kill();
  });
  const auto start = steady_clock::now();
  Status failure;
  while (failure.ok() && client_->alive(2) && steady_clock::now() - start < kWellBeforeTheTimeout) {
    Placement placement;
    failure = space_->Reserve(Copies(2), bytes.size(), 2, &placement);
    if (failure.ok()) failure = WriteBytes(placement, bytes);
    if (!failure.ok() || written.size() > 2) {
      if (!placement.fragments.empty()) space_->Free(placement);
    } else {
      written.push_back(placement);
    }
  }
  killer.join();
  EXPECT_LT(steady_clock::now() - start, kWellBeforeTheTimeout);
  // Unless the node died between two tables.
  if (!failure.ok()) {
    EXPECT_TRUE(failure.IsUnavailable()) << failure.ToString();
    ExpectNames(failure, (*nodes_)[2].address());
  }
  // Two nodes are left: writing goes on there, and every table is still whole.
  const auto deadline = Deadline::After(Clock::System(), seconds(10));
  while (client_->alive(2) && !deadline.Expired()) std::this_thread::sleep_for(milliseconds(1));
  Placement placement;
  ASSERT_TRUE(space_->Reserve(Copies(2), bytes.size(), 2, &placement).ok());
  ASSERT_TRUE(WriteBytes(placement, bytes).ok());
  written.push_back(placement);
  for (const Placement& table : written) {
    Slice got;
    const auto read = store_->OpenExtent(1, table, bytes.size())->StartRead(0, bytes.size());
    const Status s = read->Await(&got);
    ASSERT_TRUE(s.ok()) << s.ToString();
    EXPECT_TRUE(got == Slice(bytes));
  }
}

TEST_F(NodeProcessTest, KilledInTheMiddleOfCompactions) {
  OpenNodes(3);
  std::vector<TestEntry> entries;
  for (int i = 0; i < 40'000; ++i) {
    std::string key = std::to_string(1'000'000 + i);
    entries.push_back({.user_key = key,
                       .tag = PackTag(static_cast<uint64_t>(i) + 1, ValueType::kValue),
                       .value = std::string(100, 'v')});
  }
  std::shared_ptr<const TableMeta> table;
  ASSERT_TRUE(WriteTable(entries, 2, 0, &table).ok());
  ASSERT_EQ(table->placement.fragments[0].start.node, 0);
  const CompactionJob job = MakeJob({{table}}, 2, 4, 6'000'000);
  CompactionResult result;
  ASSERT_TRUE(pool::RunOnNode(client_, 0, job, nullptr, &result).ok());

  const auto start = steady_clock::now();
  std::thread killer([&] {
    std::this_thread::sleep_for(milliseconds(4));
    (*nodes_)[0].Kill();
  });
  Status s;
  do {
    result = CompactionResult();
    s = pool::RunOnNode(client_, 0, job, nullptr, &result);
  } while (s.ok());
  killer.join();
  EXPECT_TRUE(s.IsUnavailable()) << s.ToString();
  ExpectNames(s, (*nodes_)[0].address());
  EXPECT_LT(steady_clock::now() - start, kWellBeforeTheTimeout);
  // Another node takes the job over, reading the copy that is left.
  const NodeId survivor = table->placement.fragments[1].start.node;
  CompactionJob again = MakeJob({{table}}, 2, 4, 6'000'000);
  result = CompactionResult();
  s = pool::RunOnNode(client_, survivor, again, nullptr, &result);
  ASSERT_TRUE(s.ok()) << s.ToString();
  std::vector<TestEntry> got;
  for (const TableMeta& output : result.tables) {
    ASSERT_TRUE(ReadTable(std::make_shared<TableMeta>(output), &got).ok());
  }
  EXPECT_EQ(got.size(), entries.size());
}

TEST_F(NodeProcessTest, RestartedNodeHasLostItsMemory) {
  OpenNodes(2);
  const uint64_t instance = client_->instance_id(0);
  (*nodes_)[0].Kill();
  (*nodes_)[0].Start();
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_TRUE(client_->Ping(0).IsUnavailable());
  EXPECT_FALSE(client_->alive(0));
  // A new client finds it, and the leftovers of the old owner are no obstacle to a new database.
  ClosePool();
  OpenPoolAt(nodes_->pool_uri(), 1 << 20, kTimeout);
  EXPECT_NE(client_->instance_id(0), instance);
  const auto deadline = Deadline::After(Clock::System(), seconds(10));
  DatabaseLease lease;
  Status s;
  do {
    s = client_->databases()->Open("db", {.create_if_missing = true}, &lease);
  } while (s.IsBusy() && !deadline.Expired());
  ASSERT_TRUE(s.ok()) << s.ToString();
  EXPECT_FALSE(lease.existed);
}

TEST_F(NodeProcessTest, ClientWithoutDatabasesComesBackToALiveNode) {
  nodes_ = std::make_unique<MemnodeProcesses>(1);
  OpenPoolAt(nodes_->pool_uri(), 1 << 20, milliseconds(300));
  ASSERT_TRUE(client_->Ping(0).ok());
  // It does not answer in time, but it did not lose anything.
  (*nodes_)[0].Pause();
  const Status s = client_->Ping(0);
  EXPECT_TRUE(s.IsTimedOut()) << s.ToString();
  ExpectNames(s, (*nodes_)[0].address());
  (*nodes_)[0].Resume();
  EXPECT_TRUE(Eventually([&] { return client_->Ping(0).ok(); }));
}

// Run by the next test in a process of its own, which is killed.
TEST(OwnerProcess, Main) {
  const char* uri = std::getenv("NACRE_TEST_OWNER_OF");
  if (uri == nullptr) GTEST_SKIP() << "only as a child process";
  PoolOpenOptions options;
  options.slab_bytes = 1 << 20;
  std::shared_ptr<PoolImpl> pool;
  ASSERT_TRUE(OpenPool(uri, options, Clock::System(), &pool).ok());
  DatabaseLease lease;
  ASSERT_TRUE(pool->client()
                  ->databases()
                  ->Open("orphan", {.create_if_missing = true, .error_if_exists = true}, &lease)
                  .ok());
  std::vector<uint64_t> slabs;
  ASSERT_TRUE(pool::LeaseSlabs(pool->client(), 0, lease.database_id,
                               {.count = 5, .contiguous = true}, &slabs)
                  .ok());
  ASSERT_TRUE(pool::LeaseSlabs(pool->client(), 1, lease.database_id,
                               {.count = 5, .contiguous = true}, &slabs)
                  .ok());
  std::puts("the orphan is open");
  std::fflush(stdout);
  std::this_thread::sleep_for(seconds(60));
}

std::unique_ptr<ChildProcess> StartOwner(const std::string& pool_uri) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").filename().string();
  auto owner = std::make_unique<ChildProcess>(
      self, std::vector<std::string>{"--gtest_filter=OwnerProcess.Main"},
      std::vector<std::string>{"NACRE_TEST_OWNER_OF=" + pool_uri});
  const std::string output = owner->AwaitOutput("the orphan is open", 30);
  EXPECT_NE(output.find("the orphan is open"), std::string::npos) << output;
  return owner;
}

/// A node that has no time for a while finds the owner's death and the next claim side by side, and
/// its threads come to them in any order.
TEST_F(NodeProcessTest, AKilledOwnersNameIsFreeAtOnce) {
  for (const std::string scheme : {"shm", "tcp"}) {
    SCOPED_TRACE(scheme);
    OpenNodes(2, {.scheme = scheme, .parameters = scheme == "tcp" ? "?io_threads=4" : ""});
    constexpr int kRounds = 10;
    for (int round = 0; round < kRounds; ++round) {
      const std::unique_ptr<ChildProcess> owner = StartOwner(nodes_->pool_uri());
      for (size_t i = 0; i < nodes_->size(); ++i) (*nodes_)[i].Pause();
      owner->Kill();
      DatabaseLease lease;
      Status opened;
      std::thread next([&] {
        opened = client_->databases()->Open(
            "orphan", {.create_if_missing = true, .error_if_exists = true}, &lease);
      });
      std::this_thread::sleep_for(milliseconds(20));  // So that its first request is there.
      for (size_t i = 0; i < nodes_->size(); ++i) (*nodes_)[i].Resume();
      next.join();
      ASSERT_TRUE(opened.ok()) << "round " << round << ": " << opened.ToString();
      ASSERT_TRUE(client_->databases()->Leave(lease.database_id).ok());
    }
    ClosePool();
  }
}

TEST_F(NodeProcessTest, KilledOwnerLeavesNothing) {
  OpenNodes(2);
  NodeStats before;
  ASSERT_TRUE(pool::GetStats(client_, 0, &before).ok());
  const std::unique_ptr<ChildProcess> owner = StartOwner(nodes_->pool_uri());
  NodeStats stats;
  ASSERT_TRUE(pool::GetStats(client_, 0, &stats).ok());
  EXPECT_EQ(stats.slabs_leased, before.slabs_leased + 5);
  DatabaseLease lease;
  EXPECT_TRUE(client_->databases()->Open("orphan", {}, &lease).IsBusy());
  owner->Kill();
  const auto deadline = Deadline::After(Clock::System(), seconds(10));
  for (NodeId node = 0; node < 2; ++node) {
    do {
      ASSERT_TRUE(pool::GetStats(client_, node, &stats).ok());
    } while (stats.databases > before.databases && !deadline.Expired());
    EXPECT_EQ(stats.slabs_leased, before.slabs_leased);
  }
  EXPECT_TRUE(client_->databases()
                  ->Open("orphan", {.create_if_missing = true, .error_if_exists = true}, &lease)
                  .ok());
}

// ---- Command lines ----------------------------------------------------------------------------

TEST(MemnodeCommandLine, MistakesAreNamed) {
  const MemnodeProcess running;
  const struct {
    std::vector<std::string> arguments;
    const char* named;
  } cases[] = {
      {{}, "--listen"},
      {{"--listen=shm:@x"}, "--size"},
      {{"--listen=shm:@x", "--size=0"}, "--size"},
      {{"--listen=shm:@x", "--size=many"}, "many"},
      {{"--listen=shm:@x", "--size=-5"}, "-5"},
      {{"--listen=shm:@x", "--size=1KiB"}, "1.0 KiB"},
      {{"--listen=shm:@x", "--size=1000TiB"}, "TiB"},
      {{"--listen=shm:@x", "--size=8TiB"}, ""},
      {{"--listen=shm:@x", "--size=1GiB", "--slab_size=1000"}, "1000"},
      {{"--listen=shm:@x", "--size=1GiB", "--slab_size=0"}, "slab"},
      {{"--listen=shm:@x", "--size=1GiB", "--workers=0"}, "workers"},
      {{"--listen=shm:@x", "--size=1GiB", "--workers=some"}, "workers"},
      {{"--listen=shm:@x", "--size=1GiB", "--colour=red"}, "colour"},
      {{"--listen=shm:@x", "--size=1GiB", "extra"}, "extra"},
      {{"--listen=nonsense", "--size=1GiB"}, "nonsense"},
      {{"--listen=ftp:/x", "--size=1GiB"}, "ftp"},
      {{"--listen=shm:", "--size=1GiB"}, "shm:"},
      {{"--listen=shm:@x,@y", "--size=1GiB"}, "@x,@y"},
      {{"--listen=shm:/nowhere/at/all.sock", "--size=1MiB", "--slab_size=1MiB"}, "/nowhere/at/all"},
      {{"--listen=" + running.address(), "--size=1MiB", "--slab_size=1MiB"}, "node.sock"},
      {{"--listen=shm:@x", "--size=1GiB", "--region_file=/no/such/folder/r"}, "/no/such/folder"},
      {{"--listen=shm:@x", "--size=1GiB", "--region_reset"}, "region_file"},
      {{"--listen=cxl:@x", "--size=1GiB"}, "--memory=dax:PATH"},
      {{"--listen=shm:@x", "--size=1GiB", "--memory=dax:/dev/shm/x"}, "--listen=cxl:PATH"},
      {{"--listen=cxl:@x", "--size=1GiB", "--memory=dax:"}, "'dax:'"},
      {{"--listen=cxl:@x", "--size=1GiB", "--memory=/dev/dax0.0"}, "'/dev/dax0.0'"},
      {{"--listen=cxl:@x", "--size=1GiB", "--memory=dax:/x", "--region_file=/x"}, "exclude"},
      {{"--listen=cxl:@x", "--size=1GiB", "--memory=dax:/dev/null"}, "no dax device"},
      {{"--listen=cxl:@x", "--size=1GiB", "--memory=dax:/"}, "memory /"},
      {{"--listen=shm:@x", "--size=1GiB", "--log_file=/proc/none/log"}, "/proc/none/log"},
      {{"--listen=shm:@nacre-metrics", "--size=1MiB", "--slab_size=1MiB", "--metrics=nohost:x"},
       "nohost:x"},
  };
  for (const auto& mistake : cases) {
    const ProcessResult result = RunBinary("nacre-memnode", mistake.arguments);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_NE(result.output.find(mistake.named), std::string::npos)
        << mistake.named << ": " << result.output;
    EXPECT_EQ(result.output.find("ready"), std::string::npos) << result.output;
  }
}

TEST(CtlCommandLine, StatusAndNodes) {
  MemnodeProcesses nodes(2);
  const std::string pool = "--pool=" + nodes.pool_uri();
  ProcessResult result = RunBinary("nacre-ctl", {"status", pool});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("2 of 2 reachable"), std::string::npos) << result.output;
  result = RunBinary("nacre-ctl", {"nodes", pool, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("\"slabs\": 64"), std::string::npos) << result.output;
  // The one that asks.
  EXPECT_NE(result.output.find("\"requests_open\": 1,"), std::string::npos) << result.output;
  EXPECT_EQ(result.output.find("\"request_seconds\": 0.000000,"), std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find(nodes[1].address()), std::string::npos) << result.output;

  const std::string relative = std::filesystem::relative(nodes[0].socket_path());
  result = RunBinary("nacre-ctl", {"nodes", "--pool=shm:" + relative});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("shm:/"), std::string::npos) << result.output;

  nodes[1].Kill();
  for (const char* command : {"status", "nodes"}) {
    result = RunBinary("nacre-ctl", {command, pool});
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_NE(result.output.find(nodes[1].address()), std::string::npos) << result.output;
    EXPECT_NE(result.output.find("Unavailable"), std::string::npos) << result.output;
  }
  result = RunBinary("nacre-ctl", {"status", pool, "--json"});
  EXPECT_NE(result.output.find("\"reachable\": 1"), std::string::npos) << result.output;

  result = RunBinary("nacre-ctl", {"doctor", pool});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("failure  " + nodes[1].address()), std::string::npos);
  EXPECT_NE(result.output.find("ok       " + nodes[0].address()), std::string::npos);
  result = RunBinary("nacre-ctl", {"doctor", "--pool=" + nodes[0].address(), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("\"verdict\": \"ok\""), std::string::npos) << result.output;

  result = RunBinary("nacre-ctl", {"fsck", pool});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("Unavailable"), std::string::npos) << result.output;
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"paint", pool},
                                             {"status"},
                                             {"status", "--pool=ftp:/x"},
                                             {"status", "--pool=shm:"},
                                             {"status", "--pool=embedded:?nodes=2"},
                                             {"status", pool, "--colour=red"}}) {
    result = RunBinary("nacre-ctl", arguments);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_FALSE(result.output.empty());
  }
}

}  // namespace
}  // namespace nacre::pool
