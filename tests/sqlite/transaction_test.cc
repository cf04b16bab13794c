// Goal: transactions of several connections are isolated as snapshots are, and what they wrote is
// there when all connections have gone and come back, with nodes lost. Method: connections of one
// process in chosen orders over an embedded pool; over six processes that keep rs(4,2), one of
// which is killed.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/process/memnode_process.h"
#include "tests/support/sql/sql_connection.h"

namespace nacre {
namespace {

using Rows = std::vector<std::string>;

constexpr char kTransactionColumns[] =
    "id INTEGER PRIMARY KEY, name TEXT NOT NULL, n INT, UNIQUE(name), INDEX(n)";

std::string CreateTableT(const std::string& pool, const std::string& more = "") {
  return "CREATE VIRTUAL TABLE t USING nacre(pool='" + pool + "', " + more + kTransactionColumns +
         ")";
}

/// With the options of the database.
class TransactionTest : public testing::TestWithParam<const char*> {
 protected:
  TransactionTest() {
    one_.Query(CreateTableT(kPool, GetParam()));
    two_.Query(CreateTableT(kPool, GetParam()));
    one_.Query("INSERT INTO t VALUES(1, 'a', 10), (2, 'b', 20)");
  }

  static constexpr char kPool[] = "embedded:?nodes=2&size=128MiB";
  SqlConnection one_{SqlTables::kNacre};
  SqlConnection two_{SqlTables::kNacre};
};

TEST_P(TransactionTest, ReadsOneStateUntilItsEnd) {
  one_.Query("BEGIN");
  EXPECT_EQ(one_.Query("SELECT n FROM t WHERE id = 1"), Rows{"i:10|"});
  two_.Query("UPDATE t SET n = 11 WHERE id = 1");
  EXPECT_EQ(one_.Query("SELECT n FROM t WHERE id = 1"), Rows{"i:10|"});
  EXPECT_EQ(one_.Query("SELECT id FROM t WHERE n = 11"), Rows());
  EXPECT_EQ(two_.Query("SELECT n FROM t WHERE id = 1"), Rows{"i:11|"});
  one_.Query("COMMIT");
  EXPECT_EQ(one_.Query("SELECT n FROM t WHERE id = 1"), Rows{"i:11|"});
}

TEST_P(TransactionTest, HidesWritesUntilTheyAreCommitted) {
  one_.Query("BEGIN");
  one_.Query("INSERT INTO t VALUES(3, 'c', 30)");
  EXPECT_EQ(one_.Query("SELECT count(*) FROM t"), Rows{"i:3|"});
  EXPECT_EQ(two_.Query("SELECT count(*) FROM t"), Rows{"i:2|"});
  one_.Query("COMMIT");
  EXPECT_EQ(two_.Query("SELECT count(*) FROM t"), Rows{"i:3|"});
}

TEST_P(TransactionTest, TheFirstCommitterWins) {
  one_.Query("BEGIN");
  one_.Query("UPDATE t SET n = n + 1 WHERE id = 1");
  two_.Query("BEGIN");
  two_.Query("UPDATE t SET n = n + 5 WHERE id = 1");
  one_.Query("COMMIT");
  const SqlOutcome lost = two_.Run("COMMIT");
  EXPECT_EQ(lost.code, SQLITE_BUSY);
  EXPECT_EQ(lost.message, "database is locked");
  EXPECT_NE(sqlite3_get_autocommit(two_.get()), 0) << "it was rolled back";
  EXPECT_EQ(two_.Query("SELECT n FROM t WHERE id = 1"), Rows{"i:11|"});
  two_.Query("UPDATE t SET n = n + 5 WHERE id = 1");
  EXPECT_EQ(one_.Query("SELECT n FROM t WHERE id = 1"), Rows{"i:16|"});
}

TEST_P(TransactionTest, TwoRowsDoNotTakeTheSameUniqueValue) {
  one_.Query("BEGIN");
  one_.Query("INSERT INTO t VALUES(3, 'c', 1)");
  two_.Query("INSERT INTO t VALUES(4, 'c', 1)");
  EXPECT_EQ(one_.Run("COMMIT").code, SQLITE_BUSY);
  EXPECT_EQ(one_.Query("SELECT id FROM t WHERE name = 'c'"), Rows{"i:4|"});
}

TEST_P(TransactionTest, WritersOfOtherRowsDoNotMeet) {
  one_.Query("BEGIN");
  two_.Query("BEGIN");
  one_.Query("UPDATE t SET n = 1 WHERE id = 1");
  two_.Query("UPDATE t SET n = 2 WHERE id = 2");
  one_.Query("COMMIT");
  two_.Query("COMMIT");
  EXPECT_EQ(one_.Query("SELECT n FROM t ORDER BY id"), (Rows{"i:1|", "i:2|"}));
}

TEST_P(TransactionTest, AReaderGoesOnWhileItsConnectionWrites) {
  sqlite3_stmt* reader = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(one_.get(), "SELECT id FROM t ORDER BY id", -1, &reader, nullptr),
            SQLITE_OK);
  ASSERT_EQ(sqlite3_step(reader), SQLITE_ROW);
  one_.Query("UPDATE t SET n = 99 WHERE id = 2");
  one_.Query("UPDATE t SET n = n + 1 WHERE id = 2");
  ASSERT_EQ(sqlite3_step(reader), SQLITE_ROW);
  EXPECT_EQ(sqlite3_column_int(reader, 0), 2);
  EXPECT_EQ(sqlite3_step(reader), SQLITE_DONE);
  sqlite3_finalize(reader);
  EXPECT_EQ(one_.Query("SELECT n FROM t WHERE id = 2"), Rows{"i:100|"});
}

TEST_P(TransactionTest, SaysWhatItDoesNotKnow) {
  SqlConnection other(SqlTables::kNacre);
  const auto refuse = [&](const std::string& sql, const std::string& words) {
    const SqlOutcome outcome = other.Run(sql);
    EXPECT_EQ(outcome.code, SQLITE_ERROR) << sql;
    EXPECT_NE(outcome.message.find(words), std::string::npos) << outcome.message;
  };
  const std::string pool = std::string("pool='") + kPool + "', " + GetParam();
  refuse("CREATE VIRTUAL TABLE u USING nacre(id INT)", "pool='...' is missing");
  refuse("CREATE VIRTUAL TABLE u USING nacre(" + pool + "id INT DEFAULT 3)", "DEFAULT");
  refuse("CREATE VIRTUAL TABLE u USING nacre(" + pool + "id INT, CHECK(id > other))",
         "no such column: other");
  refuse("CREATE VIRTUAL TABLE u USING nacre(" + pool + "id INT, CHECK(own(id)))", "own");
  refuse("CREATE VIRTUAL TABLE u USING nacre(" + pool + "id INT > 1)", "'>'");
  refuse("CREATE VIRTUAL TABLE u USING nacre(" + pool + "id \"INT, b INT\")", "a type");
  refuse("CREATE VIRTUAL TABLE u USING nacre(" + pool + "id INT, INDEX(other))", "'other'");
  refuse("CREATE VIRTUAL TABLE u USING nacre(" + pool + "id TEXT COLLATE wild)", "NOCASE");
  refuse("CREATE VIRTUAL TABLE t USING nacre(" + pool + "id INT)", "other columns or keys");
}

INSTANTIATE_TEST_SUITE_P(Databases, TransactionTest, testing::Values("", "sharded='on', "),
                         [](const testing::TestParamInfo<const char*>& options) {
                           return *options.param == 0 ? "Owned" : "Keyspace";
                         });

TEST(SqlPoolTest, AnswersTheSameAfterANodeWasKilled) {
  MemnodeProcessOptions options;
  options.size = "1GiB";
  options.slab_size = "64MiB";  // Databases ask for this size.
  MemnodeProcesses nodes(6, options);
  const std::string sql =
      CreateTableT(nodes.pool_uri(), "redundancy='rs(4,2)', write_buffer_size=100000, ");
  const std::string query = "SELECT count(*), sum(n), max(name) FROM t WHERE n >= 100";
  Rows before;
  {
    SqlConnection connection(SqlTables::kNacre);
    connection.Query(sql);
    connection.Query(
        "WITH RECURSIVE i(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM i LIMIT 20000) "
        "INSERT INTO t SELECT k, 'name ' || k, k % 1000 FROM i");
    before = connection.Query(query);
    nodes[0].Kill();
    EXPECT_EQ(connection.Query(query), before);
    connection.Query("INSERT INTO t VALUES(20001, 'zz', 500)");
  }
  // The owner has closed the database, too: another one finds all of it.
  SqlConnection connection(SqlTables::kNacre);
  connection.Query(sql);
  EXPECT_EQ(connection.Query("SELECT count(*) FROM t"), Rows{"i:20001|"});
  EXPECT_EQ(connection.Query("SELECT id FROM t WHERE name = 'zz'"), Rows{"i:20001|"});
  EXPECT_EQ(connection.Query("SELECT id FROM t WHERE name = 'name 777'"), Rows{"i:777|"});
}

}  // namespace
}  // namespace nacre
