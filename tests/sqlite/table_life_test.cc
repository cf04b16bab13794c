// Goal: tables are made, renamed and dropped with their column families: dropping frees the space
// though others have the table open, these are told, and no family is left without a table.
// Method: connections of one process in chosen orders, over two node processes, whose families are
// listed beside them; and a process of its own that makes and drops tables and is killed at each
// step (util/named_point.h) of that.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/db.h"
#include "nacre/pool.h"
#include "sqlite/database.h"
#include "tests/support/process/crash_points.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/sql/sql_connection.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

using Rows = std::vector<std::string>;

constexpr char kNoSuchTable[] = "no such table: t";
constexpr char kColumns[] = "id INTEGER PRIMARY KEY, name TEXT NOT NULL, n INT, ";
constexpr char kIndexes[] = "UNIQUE(name), INDEX(n)";
constexpr char kPoolVariable[] = "NACRE_TEST_SQL_POOL";
constexpr char kPointsVariable[] = "NACRE_TEST_SQL_POINTS";

std::string Create(const std::string& name, const std::string& pool,
                   const std::string& options = "") {
  return "CREATE VIRTUAL TABLE " + name + " USING nacre(pool='" + pool +
         "', write_buffer_size=1000000, " + options + kColumns + kIndexes + ")";
}

std::string Fill(const std::string& name, int rows) {
  return "WITH RECURSIVE i(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM i LIMIT " +
         std::to_string(rows) + ") INSERT INTO " + name +
         " SELECT k, 'name ' || k || hex(zeroblob(100)), k % 1000 FROM i";
}

MemnodeProcessOptions LifeNodeOptions() {
  MemnodeProcessOptions options;
  options.size = "512MiB";
  options.slab_size = "64MiB";
  return options;
}

class TableLifeTest : public testing::Test {
 protected:
  /// `options` of the database, each with a comma behind it.
  explicit TableLifeTest(std::string options = "") : options_(std::move(options)) {
    one_.Query(Create("t", pool_, options_));
    two_.Query(Create("t", pool_, options_));
    one_.Query("INSERT INTO t VALUES(1, 'a', 10), (2, 'b', 20)");
    EXPECT_EQ(two_.Query("SELECT count(*) FROM t"), Rows{"i:2|"});
  }

  /// The families may be read while they change.
  Rows Families() {
    DBOptions options;
    EXPECT_TRUE(IsOk(Pool::Open(pool_, &options.pool)));
    Rows families;
    EXPECT_TRUE(IsOk(DB::ListColumnFamilies(options, "sqlite", &families)));
    return families;
  }

  /// The one of the connections.
  std::shared_ptr<sqlite::Database> Database() {
    std::shared_ptr<sqlite::Database> database;
    sqlite::DatabaseOptions options;
    options.pool = pool_;
    EXPECT_TRUE(IsOk(sqlite::Database::Open(options, &database)));
    return database;
  }

  /// Bytes of tables, also those that are being written or still read.
  uint64_t TableBytes() {
    uint64_t linked = 0;
    uint64_t unlinked = 0;
    EXPECT_TRUE(Database()->db()->GetIntProperty("nacre.space.stored-bytes", &linked));
    EXPECT_TRUE(Database()->db()->GetIntProperty("nacre.space.unlinked-bytes", &unlinked));
    return linked + unlinked;
  }

  static void ExpectNoSuchTable(SqlConnection* connection, const std::string& sql) {
    const SqlOutcome outcome = connection->Run(sql);
    EXPECT_EQ(outcome.code, SQLITE_ERROR) << sql;
    EXPECT_EQ(outcome.message, kNoSuchTable) << sql;
    EXPECT_EQ(outcome.rows, Rows()) << sql;
  }

  MemnodeProcesses nodes_{2, LifeNodeOptions()};
  const std::string pool_ = nodes_.pool_uri();
  const std::string options_;
  SqlConnection one_{SqlTables::kNacre};
  SqlConnection two_{SqlTables::kNacre};
};

TEST_F(TableLifeTest, EachTableAndEachIndexIsAFamily) {
  EXPECT_EQ(Families(), (Rows{"default", "sqlite.1", "sqlite.2", "sqlite.3"}));
  one_.Query("ALTER TABLE t RENAME TO u");
  EXPECT_EQ(Families(), (Rows{"default", "sqlite.1", "sqlite.2", "sqlite.3"}));
  one_.Query(Create("v", pool_));
  one_.Query("DROP TABLE u");
  EXPECT_EQ(Families(), (Rows{"default", "sqlite.4", "sqlite.5", "sqlite.6"}));
}

TEST_F(TableLifeTest, WhatIsRolledBackLeavesNoFamily) {
  const Rows before = Families();
  one_.Query("BEGIN");
  one_.Query(Create("u", pool_));
  one_.Query("INSERT INTO u SELECT * FROM t");
  EXPECT_EQ(Families().size(), before.size() + 3);
  EXPECT_EQ(one_.Query("SELECT name FROM u WHERE n = 20"), Rows{"t:b|"});
  one_.Query("ROLLBACK");
  EXPECT_EQ(Families(), before);
  one_.Query("BEGIN");
  one_.Query("DROP TABLE t");
  one_.Query("ROLLBACK");
  EXPECT_EQ(Families(), before);
  EXPECT_EQ(one_.Query("SELECT id FROM t WHERE name = 'b'"), Rows{"i:2|"});
  one_.Query("BEGIN");
  one_.Query("INSERT INTO t VALUES(3, 'c', 30)");
  one_.Query(Create("u", pool_));  // Younger than the state that the transaction reads.
  one_.Query("INSERT INTO u SELECT * FROM t");
  one_.Query("COMMIT");
  EXPECT_EQ(one_.Query("SELECT name FROM u WHERE n > 10 ORDER BY n"), (Rows{"t:b|", "t:c|"}));
}

TEST_F(TableLifeTest, DropFreesTheSpaceWhileOthersHaveTheTableOpen) {
  for (int round = 0; round < 2; ++round) {
    one_.Query(Create("big", pool_));
    two_.Query(Create("big", pool_));
    one_.Query(Fill("big", 20'000));
    EXPECT_EQ(two_.Query("SELECT count(*) FROM big"), Rows{"i:20000|"});
    EXPECT_TRUE(IsOk(Database()->db()->Flush(FlushOptions())));
    EXPECT_TRUE(IsOk(Database()->db()->WaitForCompact()));
    EXPECT_GT(TableBytes(), uint64_t{4} << 20);
    one_.Query("DROP TABLE big");
    EXPECT_LT(TableBytes(), uint64_t{1} << 20);
    EXPECT_EQ(two_.Run("SELECT * FROM big").message, "no such table: big");
    two_.Query("DROP TABLE big");
  }
}

// Each of their MemTables alone is far from full.
TEST_F(TableLifeTest, WhatTablesHaveInMemoryIsBoundedForAllTogether) {
  constexpr int kTables = 8;
  EXPECT_EQ(TableBytes(), 0u);
  for (int i = 0; i < kTables; ++i) one_.Query(Create("t" + std::to_string(i), pool_));
  const auto fill = [this](int rows) {
    for (int i = 0; i < kTables; ++i) one_.Query(Fill("t" + std::to_string(i), rows));
    EXPECT_TRUE(IsOk(Database()->db()->WaitForCompact()));
  };
  fill(3);
  EXPECT_EQ(TableBytes(), 0u) << "a few rows in many tables are no reason";
  for (int i = 0; i < kTables; ++i) one_.Query("DELETE FROM t" + std::to_string(i));
  fill(1000);
  EXPECT_GT(TableBytes(), uint64_t{500} << 10);
}

// ---- What others do with a table ----------------------------------------------------------------

class TableOfOthersTest : public TableLifeTest, public testing::WithParamInterface<const char*> {
 protected:
  TableOfOthersTest() : TableLifeTest(GetParam()) {}
};

TEST_P(TableOfOthersTest, OthersAreToldThatItWasDropped) {
  sqlite3_stmt* select = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(two_.get(), "SELECT id FROM t WHERE id = 1", -1, &select, nullptr),
            SQLITE_OK);
  one_.Query("DROP TABLE t");
  EXPECT_EQ(sqlite3_step(select), SQLITE_ERROR) << "prepared before";
  EXPECT_STREQ(sqlite3_errmsg(two_.get()), kNoSuchTable);
  sqlite3_finalize(select);
  ExpectNoSuchTable(&two_, "SELECT * FROM t");
  ExpectNoSuchTable(&two_, "INSERT INTO t VALUES(3, 'c', 30)");
  ExpectNoSuchTable(&two_, "UPDATE t SET n = 1");
  ExpectNoSuchTable(&two_, "DELETE FROM t WHERE id = 1");
  two_.Query("DROP TABLE t");  // It drops the table of its own schema.
  two_.Query(Create("t", pool_, options_));
  EXPECT_EQ(two_.Query("SELECT count(*) FROM t"), Rows{"i:0|"});
}

TEST_P(TableOfOthersTest, OthersAreToldThatItWasRenamed) {
  one_.Query("ALTER TABLE t RENAME TO u");
  ExpectNoSuchTable(&two_, "SELECT * FROM t");
  ExpectNoSuchTable(&two_, "INSERT INTO t VALUES(3, 'c', 30)");
  two_.Query("DROP TABLE t");
  EXPECT_EQ(one_.Query("SELECT count(*) FROM u"), Rows{"i:2|"}) << "not what has another name";
  two_.Query(Create("u", pool_, options_));
  EXPECT_EQ(two_.Query("SELECT count(*) FROM u"), Rows{"i:2|"});
}

TEST_P(TableOfOthersTest, OneThatIsMadeAgainIsUsedAsItIs) {
  one_.Query("DROP TABLE t");
  one_.Query(Create("t", pool_, options_));
  one_.Query("INSERT INTO t VALUES(7, 'new', 70)");
  EXPECT_EQ(two_.Query("SELECT id FROM t"), Rows{"i:7|"});
  EXPECT_EQ(two_.Query("SELECT id FROM t WHERE n = 70"), Rows{"i:7|"});
  two_.Query("INSERT INTO t(name) VALUES('next')");
  EXPECT_EQ(one_.Query("SELECT id FROM t WHERE name = 'next'"), Rows{"i:8|"});
}

TEST_P(TableOfOthersTest, ATransactionReadsOnInItsStateAndWritesNoMore) {
  two_.Query("BEGIN");
  EXPECT_EQ(two_.Query("SELECT count(*) FROM t"), Rows{"i:2|"});
  one_.Query("DROP TABLE t");
  EXPECT_EQ(two_.Query("SELECT name FROM t WHERE n = 20"), Rows{"t:b|"});
  two_.Query("INSERT INTO t VALUES(3, 'c', 30)");
  EXPECT_EQ(two_.Run("COMMIT").code, SQLITE_BUSY);
  ExpectNoSuchTable(&two_, "SELECT * FROM t");
  if (options_.empty()) {
    EXPECT_EQ(Families(), Rows{"default"});
  }
}

TEST_P(TableOfOthersTest, AnUpdateInPlaceConflictsWithADrop) {
  two_.Query("BEGIN");
  two_.Query("UPDATE t SET n = 5 WHERE id = 1");
  one_.Query("DROP TABLE t");
  EXPECT_EQ(two_.Run("COMMIT").code, SQLITE_BUSY);
}

INSTANTIATE_TEST_SUITE_P(Databases, TableOfOthersTest, testing::Values("", "sharded='on', "),
                         [](const testing::TestParamInfo<const char*>& options) {
                           return *options.param == 0 ? "Owned" : "Keyspace";
                         });

// ---- Deaths -------------------------------------------------------------------------------------

/// Makes tables and drops them; dies where it is told to.
TEST(SqlCrashChild, Run) {
  const char* const pool = std::getenv(kPoolVariable);
  if (pool == nullptr) GTEST_SKIP() << "started by others";
  CrashPoints points(std::getenv(kPointsVariable));
  points.Install();
  SqlConnection connection(SqlTables::kNacre);
  connection.Query(Create("t", pool));
  connection.Query(Fill("t", 2000));
  connection.Query("BEGIN");
  connection.Query(std::string("CREATE VIRTUAL TABLE u USING nacre(pool='") + pool + "', id INT)");
  connection.Query("ROLLBACK");
  connection.Query("DROP TABLE t");
  connection.Query(Create("t", pool));
}

/// The tables of the catalogue, and all families.
void ReadDatabase(const std::string& pool, Rows* tables, Rows* families) {
  DBOptions options;
  ASSERT_TRUE(IsOk(Pool::Open(pool, &options.pool)));
  ASSERT_TRUE(IsOk(DB::ListColumnFamilies(options, "sqlite", families)));
  std::vector<ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : *families) descriptors.emplace_back(name, ColumnFamilyOptions());
  std::vector<ColumnFamilyHandle*> handles;
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options, "sqlite", descriptors, &handles, &db)));
  std::string record;
  for (const char* name : {"t", "u", "other"}) {
    const Status status = db->Get(ReadOptions(), std::string("t") + name, &record);
    EXPECT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
    if (status.ok()) tables->push_back(name);
  }
  for (ColumnFamilyHandle* handle : handles) {
    EXPECT_TRUE(IsOk(db->DestroyColumnFamilyHandle(handle)));
  }
}

TEST(SqlCrashTest, LeavesNoFamilyWithoutATable) {
  CrashPoints points;
  const auto run = [&points](const CrashAt& at) {
    MemnodeProcesses nodes(2, LifeNodeOptions());
    points.Aim(at);
    ChildProcess child("sqlite_tests", {"--gtest_filter=SqlCrashChild.Run"},
                       {std::string(kPoolVariable) + '=' + nodes.pool_uri(),
                        std::string(kPointsVariable) + '=' + points.path()});
    const std::string output = child.AwaitOutput("", 300);
    EXPECT_EQ(child.AwaitExit(300), at.hit == 0 ? 0 : -1) << output;
    // Those of a table come and go together: `t` has three, `u` has one.
    Rows left;
    DBOptions options;
    ASSERT_TRUE(IsOk(Pool::Open(nodes.pool_uri(), &options.pool)));
    ASSERT_TRUE(IsOk(DB::ListColumnFamilies(options, "sqlite", &left)));
    EXPECT_TRUE(left.size() == 1 || left.size() == 4 || left.size() == 5) << left.size();
    {
      SqlConnection connection(SqlTables::kNacre);
      connection.Query("CREATE VIRTUAL TABLE other USING nacre(pool='" + nodes.pool_uri() +
                       "', id INTEGER PRIMARY KEY)");
    }
    Rows tables;
    Rows families;
    ReadDatabase(nodes.pool_uri(), &tables, &families);
    const size_t of_tables = 1 + 3 * (tables.size() - 1);  // The first is `other`'s.
    EXPECT_EQ(families.size(), 1 + of_tables) << ToString(at);
    if (tables.size() == 1) return;
    SqlConnection connection(SqlTables::kNacre);
    connection.Query(Create("t", nodes.pool_uri()));
    EXPECT_EQ(connection.Query("SELECT * FROM nacre_integrity_check('t')"), Rows{"t:ok|"});
  };
  run({"family.created", 0});
  const std::map<std::string, uint64_t> hits = points.Hits();
  for (const auto& [point, changes] : {std::pair("family.created", 3), {"family.dropped", 2}}) {
    ASSERT_EQ(hits.at(point), static_cast<uint64_t>(changes));  // One for each table.
    for (uint64_t hit = 1; hit <= hits.at(point); ++hit) run({point, hit});
  }
}

}  // namespace
}  // namespace nacre
