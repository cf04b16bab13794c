// Goal: a database whose commits go to a command log is, after its process is gone, what it was:
// tables, rows and indexes, with nodes that keep what was flushed, and with nodes that come back
// empty. Databases and logs that do not belong together are not mixed up.
// Method: SQL over an embedded pool, which is gone with the last connection, so that each opening
// restores the checkpoint and replays the log; the same statements on SQLite's own tables say what
// has to be there. Pools of processes for what stays there.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/checkpoint.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/sql/sql_connection.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;
using Rows = std::vector<std::string>;

constexpr char kReplayPool[] = "embedded:?nodes=2&size=128MiB";
constexpr char kReplayColumns[] = "id INTEGER PRIMARY KEY, name TEXT, n INT";
constexpr char kOrdered[] = "a TEXT COLLATE NOCASE, b INT, c REAL";

class CommandReplayTest : public testing::Test {
 protected:
  void Connect(const std::string& pool = kReplayPool, const std::string& more = "") {
    options_ = "pool='" + pool + "', command_log='" + folder_.File("log") + "', " + more;
    connection_ = std::make_unique<SqlConnection>(SqlTables::kNacre);
  }
  SqlOutcome TryCreate(const std::string& name, const std::string& columns) {
    return connection_->Run("CREATE VIRTUAL TABLE " + name + " USING nacre(" + options_ + columns +
                            ")");
  }
  void CreateTables() {
    ASSERT_EQ(TryCreate("t", std::string(kReplayColumns) + ", UNIQUE(name), INDEX(n)").message, "");
    ASSERT_EQ(TryCreate("u", std::string(kOrdered) + ", PRIMARY KEY(a, b), INDEX(c)").message, "");
    if (native_made_) return;
    native_made_ = true;
    native_.Query(std::string("CREATE TABLE t(") + kReplayColumns + ", UNIQUE(name))");
    native_.Query(std::string("CREATE TABLE u(") + kOrdered + ", PRIMARY KEY(a, b)) WITHOUT ROWID");
  }
  /// Runs it on both, which have to answer the same.
  void Both(const std::string& sql) {
    const SqlOutcome ours = connection_->Run(sql);
    const SqlOutcome theirs = native_.Run(sql);
    EXPECT_EQ(ours.code, theirs.code) << sql << ": " << ours.message;
    EXPECT_EQ(ours.rows, theirs.rows) << sql;
  }
  void Compare() {
    Both("SELECT * FROM t ORDER BY id");
    Both("SELECT id FROM t WHERE n >= 0 ORDER BY n, id");
    Both("SELECT name, id FROM t ORDER BY name");
    Both("SELECT * FROM u ORDER BY a, b");
    Both("SELECT a, b FROM u WHERE c > 0 ORDER BY c, a, b");
  }
  /// The process that has the database goes; with an embedded pool, the database too.
  void Leave() { connection_.reset(); }
  void Reopen(const std::string& more = "") {
    Leave();
    Connect(kReplayPool, more);
    CreateTables();
  }

  const TempFolder folder_;
  std::string options_;
  SqlConnection native_{SqlTables::kNative};
  bool native_made_ = false;
  std::unique_ptr<SqlConnection> connection_;
};

/// What row numbers and conflicts decide, what is undone, and what depends on time and chance.
const char* const kStatements[] = {
    "INSERT INTO t(name, n) VALUES('a', 1), ('b', 2), ('c', 3)",
    "INSERT OR REPLACE INTO t(name, n) VALUES('b', 20)",
    "UPDATE t SET n = n + 100 WHERE n < 20",
    "UPDATE OR REPLACE t SET name = 'a' WHERE name = 'c'",
    "BEGIN",
    "INSERT INTO t VALUES(50, 'x', 5)",
    "SAVEPOINT s",
    "INSERT INTO t VALUES(51, 'y', 5)",
    "DELETE FROM t WHERE id = 50",
    "ROLLBACK TO s",
    "INSERT INTO t VALUES(52, 'z', NULL)",
    "COMMIT",
    "BEGIN",
    "DELETE FROM t",
    "ROLLBACK",
    "INSERT INTO u VALUES('One', 1, 0.5), ('two', 2, 7), ('three', NULL, 1)",
    "INSERT INTO u VALUES('One', 1, 0.5), ('two', 2, 7), ('Three', 3, -1.5)",
    "INSERT OR REPLACE INTO u VALUES('ONE', 1, 99)",
    "UPDATE u SET b = b + 10",
    "UPDATE t SET id = id + 1000 WHERE name = 'x'",
    "DELETE FROM u WHERE a = 'two'",
};

TEST_F(CommandReplayTest, MakesTheSameRowsAgain) {
  Connect();
  CreateTables();
  for (const char* sql : kStatements) Both(sql);
  Compare();
  Reopen();
  Compare();
  Both("INSERT INTO t(name, n) VALUES('new', 1)");
  Both("SELECT id FROM t WHERE name = 'new'");
  Reopen();
  Compare();
}

TEST_F(CommandReplayTest, DecidesNothingTwice) {
  Connect();
  CreateTables();
  connection_->Query(
      "INSERT INTO t SELECT value, hex(randomblob(8)) || datetime('now'), random() "
      "FROM json_each('[1,2,3,4,5]')");
  const Rows before = connection_->Query("SELECT * FROM t ORDER BY id");
  ASSERT_EQ(before.size(), 5u);
  Reopen();
  EXPECT_EQ(connection_->Query("SELECT * FROM t ORDER BY id"), before);
}

TEST_F(CommandReplayTest, MakesRenamesAndDropsTablesAgain) {
  Connect();
  CreateTables();
  Both("INSERT INTO t VALUES(1, 'a', 1)");
  Both("ALTER TABLE t RENAME TO old");
  Both("UPDATE old SET n = 2");
  connection_->Query("DROP TABLE u");
  ASSERT_EQ(TryCreate("u", "k INTEGER PRIMARY KEY, other TEXT").message, "");
  connection_->Query("INSERT INTO u VALUES(7, 'seven')");
  Leave();
  Connect();
  ASSERT_EQ(TryCreate("old", std::string(kReplayColumns) + ", UNIQUE(name), INDEX(n)").message, "");
  ASSERT_EQ(TryCreate("u", "k INTEGER PRIMARY KEY, other TEXT").message, "");
  Both("SELECT * FROM old");
  EXPECT_EQ(connection_->Query("SELECT * FROM u"), Rows{"i:7|t:seven|"});
  ASSERT_EQ(TryCreate("t", std::string(kReplayColumns) + ", UNIQUE(name), INDEX(n)").message, "");
  EXPECT_EQ(connection_->Query("SELECT * FROM t"), Rows()) << "its rows went with the name";
}

/// Returns once the log's first file is gone, and so a checkpoint made.
bool AwaitFirstFileGone(const std::string& log) {
  const auto start = std::chrono::steady_clock::now();
  while (fs::exists(log + "/COMMANDS-00000000000000000001")) {
    if (std::chrono::steady_clock::now() - start > std::chrono::minutes(1)) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_F(CommandReplayTest, BeginsWithTheLastCheckpoint) {
  Connect(kReplayPool, "command_log_size=8000, ");
  CreateTables();
  const std::string insert =
      "WITH RECURSIVE i(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM i LIMIT 500) INSERT INTO t "
      "SELECT k + ";
  for (int round = 0; round < 3; ++round) {
    const std::string first = std::to_string(500 * round);
    Both(insert + first + ", 'name ' || (k + " + first + "), k FROM i");
    Both("DELETE FROM t WHERE n % 10 = " + std::to_string(round));
    ASSERT_TRUE(AwaitFirstFileGone(folder_.File("log")));
  }
  std::vector<CheckpointInfo> checkpoints;
  ASSERT_TRUE(IsOk(GetCheckpoints(folder_.File("log/checkpoints"), &checkpoints)));
  EXPECT_GE(checkpoints.size(), 1u);
  Both("INSERT INTO t VALUES(100000, 'behind it', 5)");
  Reopen("command_log_size=8000, ");
  Compare();
  Both("UPDATE t SET n = n + 1");
  Reopen("command_log_size=8000, ");
  Compare();
}

TEST_F(CommandReplayTest, GoesOnFromWhatThePoolHas) {
  MemnodeProcessOptions options;
  options.size = "512MiB";
  options.slab_size = "64MiB";  // Databases ask for this size.
  MemnodeProcesses nodes(2, options);
  Connect(nodes.pool_uri());
  CreateTables();
  for (const char* sql : kStatements) Both(sql);
  Leave();
  Connect(nodes.pool_uri());
  CreateTables();
  Compare();
  Both("INSERT INTO t VALUES(100, 'more', 5)");
  Leave();
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].Kill();
    nodes[i].Start();
  }
  Connect(nodes.pool_uri());
  CreateTables();
  Compare();
}

TEST_F(CommandReplayTest, TakesOverADatabaseThatHadNoLog) {
  MemnodeProcessOptions options;
  options.size = "512MiB";
  options.slab_size = "64MiB";
  MemnodeProcesses nodes(2, options);
  Connect(nodes.pool_uri());
  const std::string logged = options_;
  options_ = "pool='" + nodes.pool_uri() + "', ";
  CreateTables();
  Both("INSERT INTO t VALUES(1, 'from before', 5)");
  Leave();
  Connect(nodes.pool_uri());
  CreateTables();
  Both("INSERT INTO t VALUES(2, 'from then on', 5)");
  Leave();

  Connect(nodes.pool_uri());
  options_ = "pool='" + nodes.pool_uri() + "', ";
  const SqlOutcome without = TryCreate("t", kReplayColumns);
  EXPECT_EQ(without.code, SQLITE_ERROR);
  EXPECT_NE(without.message.find("has a command log"), std::string::npos) << without.message;
  options_ = "pool='" + nodes.pool_uri() + "', command_log='" + folder_.File("other") + "', ";
  const SqlOutcome other = TryCreate("t", kReplayColumns);
  EXPECT_EQ(other.code, SQLITE_ERROR);
  EXPECT_NE(other.message.find("it is not in"), std::string::npos) << other.message;
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].Kill();
    nodes[i].Start();
  }
  options_ = logged;
  CreateTables();
  Compare();
}

TEST_F(CommandReplayTest, KeepsLogsAndDatabasesApart) {
  Connect();
  CreateTables();
  const auto refuse = [this](const std::string& more, const std::string& words) {
    const SqlOutcome outcome = connection_->Run("CREATE VIRTUAL TABLE v USING nacre(" + more +
                                                std::string(kReplayColumns) + ")");
    EXPECT_NE(outcome.code, SQLITE_OK);
    EXPECT_NE(outcome.message.find(words), std::string::npos) << outcome.message;
  };
  const std::string pool = std::string("pool='") + kReplayPool + "', ";
  refuse(pool, "command_log: '', but database 'sqlite' is open with");
  refuse(options_ + "database='other', ", "LOCK: another process is at work");
  refuse(options_ + "command_log_size=many, ", "not a number of bytes");
  refuse(pool + "remote_log='perhaps', ", "neither on nor off");
  Leave();
  Connect(kReplayPool, "database='other', ");
  EXPECT_NE(TryCreate("t", kReplayColumns).message.find("of the log of database 'sqlite'"),
            std::string::npos);
}

}  // namespace
}  // namespace nacre
