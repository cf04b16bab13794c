// Goal: a process whose commits go to a command log may be killed at any moment, over and over,
// with or without the memory nodes: what it acknowledged is there afterwards, transactions are
// whole, and at most the one that each connection had under way is there besides.
// Method: a process with four connections in four threads is killed after some transactions, or
// kills itself at a point of the log (util/named_point.h), for each point and each time that a
// whole run reaches it. Afterwards the tables are compared with SQLite's own after as many
// transactions (tests/support/sql/sql_ledger.h), or TPC-C's conditions are checked. One crash alone
// is replayed by NACRE_CRASH_AT=POINT:HIT.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process/crash_points.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/sql/sql_ledger.h"
#include "tests/support/sql/sql_tpcc.h"
#include "tests/support/temp_folder.h"
#include "util/named_point.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

constexpr uint64_t kWriters = 4;
constexpr auto kMostPatience = std::chrono::seconds(120);
constexpr char kEmbedded[] = "embedded:?nodes=2&size=128MiB";

/// How many transactions of each connection were acknowledged, in memory that outlives the process.
class Acknowledged {
 public:
  explicit Acknowledged(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(::ftruncate(fd, sizeof(Counts)), 0);
    void* const memory = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    EXPECT_NE(memory, MAP_FAILED);
    counts_ = static_cast<Counts*>(memory);
  }
  ~Acknowledged() { ::munmap(counts_, sizeof(Counts)); }
  Acknowledged(const Acknowledged&) = delete;
  Acknowledged& operator=(const Acknowledged&) = delete;

  std::atomic<uint64_t>& operator[](uint64_t writer) { return (*counts_)[writer]; }
  uint64_t sum() const {
    uint64_t sum = 0;
    for (const auto& count : *counts_) sum += count;
    return sum;
  }

 private:
  using Counts = std::array<std::atomic<uint64_t>, kWriters>;
  Counts* counts_;
};

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string FirstFile(const std::string& log) { return log + "/COMMANDS-00000000000000000001"; }

/// Runs in the process: transactions of `writers` connections, `count` of each (0: without end).
void RunLedger(const std::string& options, uint64_t seed, uint64_t writers, uint64_t count,
               Acknowledged* acknowledged) {
  std::vector<std::unique_ptr<SqlLedger>> ledgers;
  for (uint64_t i = 0; i < writers; ++i) {
    ledgers.push_back(std::make_unique<SqlLedger>(SqlTables::kNacre, options, seed));
  }
  RunTogether("ledger", writers, [&](size_t writer) {
    const uint64_t done = ledgers[writer]->Done(writer);
    for (uint64_t n = done + 1; count == 0 || n <= done + count; ++n) {
      ASSERT_TRUE(ledgers[writer]->Run(writer, n)) << ledgers[writer]->message();
      (*acknowledged)[writer] = n;
    }
  });
}

/// `run`: numbers the processes of a test. Clients that draw the same numbers as those of the
/// process before would pay with the ids that it has used.
void RunTpcc(const std::string& options, uint64_t seed, uint64_t run, Acknowledged* acknowledged) {
  std::vector<std::unique_ptr<TpccClient>> clients;
  TpccClient::Scale scale;
  scale.options = options;
  for (uint64_t i = 0; i < kWriters; ++i) {
    clients.push_back(std::make_unique<TpccClient>(SqlTables::kNacre, "", scale,
                                                   (seed + 1000 * run) * kWriters + i));
  }
  RunTogether("tpcc", kWriters, [&](size_t client) {
    while (clients[client]->RunOne()) {
      (*acknowledged)[client] = static_cast<uint64_t>(clients[client]->new_orders());
    }
  });
}

/// Commits meet a file that must not grow, and a while later one that may.
void RunOnAFullDisk(const std::string& options, const std::string& log, uint64_t seed) {
  SqlLedger ledger(SqlTables::kNacre, options, seed);
  ASSERT_TRUE(ledger.Run(0, 1)) << ledger.message();
  const std::vector<std::string> before = ledger.Contents();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlimit full = limit;
  full.rlim_cur = std::filesystem::file_size(FirstFile(log)) + 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  for (int i = 0; i < 2; ++i) {
    const SqlOutcome refused = ledger.connection().Run("INSERT INTO done VALUES(99, 1)");
    EXPECT_EQ(refused.code, SQLITE_IOERR) << refused.message;
    EXPECT_NE(refused.message.find(FirstFile(log)), std::string::npos) << refused.message;
    EXPECT_EQ(ledger.Contents(), before);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  ASSERT_TRUE(ledger.Run(0, 2)) << ledger.message();
}

TEST(CommandCrashChild, Run) {
  const std::string kind = Environment("NACRE_SQL_CRASH");
  if (kind.empty()) GTEST_SKIP() << "started by others";
  const std::string log = Environment("NACRE_SQL_CRASH_LOG");
  const std::string options = Environment("NACRE_SQL_CRASH_OPTIONS");
  const uint64_t seed = std::stoull(Environment("NACRE_SQL_CRASH_SEED"));
  Acknowledged acknowledged(Environment("NACRE_SQL_CRASH_ACKNOWLEDGED"));
  if (kind == "ledger") RunLedger(options, seed, kWriters, 0, &acknowledged);
  const uint64_t run = std::stoull(Environment("NACRE_SQL_CRASH_RUN"));
  if (kind == "tpcc") RunTpcc(options, seed, run, &acknowledged);
  if (kind == "full") RunOnAFullDisk(options, log, seed);
  if (kind != "points") return;
  CrashPoints points(Environment("NACRE_SQL_CRASH_POINTS"));
  points.Install();
  SqlLedger open(SqlTables::kNacre, options, seed);  // This makes the database.
  RunLedger(options, seed, 1, 4, &acknowledged);
  // What a table that is gone again had is freed at once.
  open.connection().Query("CREATE VIRTUAL TABLE gone USING nacre(" + options +
                          "id INTEGER PRIMARY KEY, n INT, INDEX(n))");
  open.connection().Query("INSERT INTO gone VALUES(1, 1), (2, 2)");
  open.connection().Query("UPDATE gone SET n = n + 1");
  open.connection().Query("DELETE FROM gone WHERE id = 1");
  open.connection().Query("DROP TABLE gone");
  // Writes until a checkpoint has made the first file superfluous.
  const auto start = std::chrono::steady_clock::now();
  while (std::filesystem::exists(FirstFile(log)) &&
         std::chrono::steady_clock::now() - start < kMostPatience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  points.Acknowledge(1);  // It came to its end.
}

class CommandCrash : public testing::Test {
 protected:
  explicit CommandCrash(uint64_t log_bytes = 20'000)
      : log_(folder_.File("log")), log_bytes_(log_bytes) {}

  void UsePool(const std::string& pool) {
    options_ = "pool='" + pool + "', command_log='" + log_ +
               "', write_buffer_size=100000, command_log_size=" + std::to_string(log_bytes_) + ", ";
  }
  std::unique_ptr<ChildProcess> Start(const std::string& kind, const std::string& points = "") {
    return std::make_unique<ChildProcess>(
        "sqlite_tests", std::vector<std::string>{"--gtest_filter=CommandCrashChild.Run"},
        std::vector<std::string>{
            "NACRE_SQL_CRASH=" + kind, "NACRE_SQL_CRASH_LOG=" + log_,
            "NACRE_SQL_CRASH_OPTIONS=" + options_, "NACRE_SQL_CRASH_SEED=" + std::to_string(seed_),
            "NACRE_SQL_CRASH_RUN=" + std::to_string(runs_++), "NACRE_SQL_CRASH_POINTS=" + points,
            "NACRE_SQL_CRASH_ACKNOWLEDGED=" + folder_.File("acknowledged")});
  }
  /// Kills the process once it has had so many transactions more acknowledged.
  void KillAfter(ChildProcess* process, uint64_t transactions) {
    const uint64_t goal = acknowledged_.sum() + transactions;
    const auto start = std::chrono::steady_clock::now();
    while (acknowledged_.sum() < goal) {
      if (std::chrono::steady_clock::now() - start > kMostPatience) {
        process->Kill();
        FAIL() << process->AwaitOutput("", 1);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    process->Kill();
  }
  static void RestartEmpty(MemnodeProcesses* nodes) {
    for (size_t i = 0; i < nodes->size(); ++i) (*nodes)[i].Kill();
    for (size_t i = 0; i < nodes->size(); ++i) (*nodes)[i].Start();
  }
  /// Opens the database, and compares. Leaves it closed.
  void Check() {
    SqlLedger found(SqlTables::kNacre, options_, seed_);
    for (uint64_t writer = 0; writer < kWriters; ++writer) {
      const uint64_t done = found.Done(writer);
      EXPECT_GE(done, acknowledged_[writer]) << "writer " << writer;
      EXPECT_LE(done, acknowledged_[writer] + 1) << "writer " << writer;
      acknowledged_[writer] = done;
      while (expected_done_[writer] < done) {
        ASSERT_TRUE(expected_.Run(writer, ++expected_done_[writer])) << expected_.message();
      }
    }
    EXPECT_EQ(found.Contents(), expected_.Contents());
  }

  const uint64_t seed_ = TestSeed(1);
  const TempFolder folder_;
  const std::string log_;
  const uint64_t log_bytes_;
  std::string options_;
  uint64_t runs_ = 0;
  Acknowledged acknowledged_{folder_.File("acknowledged")};
  SqlLedger expected_{SqlTables::kNative, "", seed_};
  std::array<uint64_t, kWriters> expected_done_{};
};

MemnodeProcessOptions NodeOptions() {
  MemnodeProcessOptions options;
  options.size = "512MiB";
  options.slab_size = "64MiB";  // Databases ask for this size.
  return options;
}

TEST_F(CommandCrash, LosesNothingAtAnyMoment) {
  MemnodeProcesses nodes(2, NodeOptions());
  UsePool(nodes.pool_uri());
  std::mt19937_64 random(seed_);
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    const bool lose_nodes = random() % 3 == 0;
    SCOPED_TRACE("round " + std::to_string(round) + (lose_nodes ? ", with the nodes" : ""));
    const std::unique_ptr<ChildProcess> process = Start("ledger");
    ASSERT_NO_FATAL_FAILURE(KillAfter(process.get(), random() % 150));
    if (lose_nodes) RestartEmpty(&nodes);
    // Otherwise the next process finds what this one left.
    if (round + 1 == kRounds || random() % 2 == 0) {
      ASSERT_NO_FATAL_FAILURE(Check());
    }
  }
}

TEST_F(CommandCrash, LosesNothingOfAPoolThatGoesWithTheProcess) {
  UsePool(kEmbedded);
  std::mt19937_64 random(seed_);
  for (int round = 0; round < 3; ++round) {
    const std::unique_ptr<ChildProcess> process = Start("ledger");
    ASSERT_NO_FATAL_FAILURE(KillAfter(process.get(), 1 + random() % 150));
    ASSERT_NO_FATAL_FAILURE(Check());
  }
}

TEST_F(CommandCrash, KeepsTpccConsistent) {
  MemnodeProcesses nodes(2, NodeOptions());
  UsePool(nodes.pool_uri());
  TpccClient::Scale scale;
  scale.options = options_;
  TpccClient(SqlTables::kNacre, "", scale, seed_).Load();
  std::mt19937_64 random(seed_);
  int64_t orders = 0;
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < kWriters; ++i) acknowledged_[i] = 0;
    const std::unique_ptr<ChildProcess> process = Start("tpcc");
    ASSERT_NO_FATAL_FAILURE(KillAfter(process.get(), 20 + random() % 100));
    if (round == 1) RestartEmpty(&nodes);
    const SqlLedger open(SqlTables::kNacre, options_, seed_);  // The last owner is gone by now.
    TpccClient client(SqlTables::kNacre, "", scale, seed_);
    client.CheckConsistency();
    const auto least = orders + static_cast<int64_t>(acknowledged_.sum());
    const std::string row = client.connection().Query("SELECT count(*) FROM orders").at(0);
    orders = std::stoll(row.substr(2));
    EXPECT_GE(orders, least);
    EXPECT_LE(orders, least + static_cast<int64_t>(kWriters));
  }
}

TEST_F(CommandCrash, RefusesCommitsOnAFullDisk) {
  UsePool(kEmbedded);
  const std::unique_ptr<ChildProcess> process = Start("full");
  const std::string output = process->AwaitOutput("", 120);
  EXPECT_EQ(process->AwaitExit(60), 0) << output;
  acknowledged_[0] = 2;
  ASSERT_NO_FATAL_FAILURE(Check());
}

/// The log is cut at each chance, so that one short run meets all points.
class CommandCrashPoint : public CommandCrash {
 protected:
  CommandCrashPoint() : CommandCrash(600) {}

  void RunOne(const CrashAt& at, bool lose_nodes) {
    std::filesystem::remove_all(log_);
    for (uint64_t i = 0; i < kWriters; ++i) acknowledged_[i] = 0;
    points_.Aim(at);
    MemnodeProcesses nodes(2, NodeOptions());
    UsePool(nodes.pool_uri());
    const std::unique_ptr<ChildProcess> process = Start("points", points_.path());
    const std::string output = process->AwaitOutput("", 120);
    const int code = process->AwaitExit(60);
    if (at.hit == 0) {
      ASSERT_EQ(code, 0) << output;
      ASSERT_EQ(points_.acknowledged(), 1u) << output;
      for (const auto& [point, hits] : points_.Hits()) {
        EXPECT_TRUE(hits > 0 || !IsOfLog(point)) << point << " was never reached";
      }
    }
    if (lose_nodes) RestartEmpty(&nodes);
    SqlLedger found(SqlTables::kNacre, options_, seed_);
    const uint64_t done = found.Done(0);
    EXPECT_GE(done, acknowledged_[0]);
    EXPECT_LE(done, acknowledged_[0] + 1);
    SqlLedger expected(SqlTables::kNative, "", seed_);
    for (uint64_t n = 1; n <= done + 1; ++n) {
      if (n == done + 1) {  // It goes on.
        ASSERT_TRUE(found.Run(0, n)) << found.message();
      }
      ASSERT_TRUE(expected.Run(0, n)) << expected.message();
    }
    ASSERT_EQ(found.Contents(), expected.Contents());
  }
  static bool IsOfLog(const std::string& point) { return point.starts_with("command-log."); }

  CrashPoints points_;
};

TEST_F(CommandCrashPoint, LosesNothingAtAnyStep) {
  RunWithEachCrash(
      points_, 0, 1, [this](const CrashAt& at) { RunOne(at, /*lose_nodes=*/false); }, IsOfLog);
}

TEST_F(CommandCrashPoint, LosesNothingAtAnyStepWithTheNodes) {
  RunWithEachCrash(
      points_, 0, 1, [this](const CrashAt& at) { RunOne(at, /*lose_nodes=*/true); }, IsOfLog);
}

}  // namespace
}  // namespace nacre
