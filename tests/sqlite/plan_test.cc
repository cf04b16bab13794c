// Goal: statements use the keys they can: both directions of an order, lists of values, patterns,
// counts of equal keys for the order of a join.
// Method: SQLite's own account of its plan (EXPLAIN QUERY PLAN), in which a table of Nacre appears
// with the number of the index and the letters of sqlite/query/plan.h, and the rows, which the same
// statement gives if a + in front of the columns keeps it from all keys.

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/process/memnode_process.h"
#include "tests/support/sql/sql_connection.h"

namespace nacre {
namespace {

using Rows = std::vector<std::string>;

constexpr char kPlanPool[] = "embedded:?nodes=2&size=128MiB";

std::string CreateWithColumns(const std::string& name, const std::string& pool,
                              const std::string& columns) {
  return "CREATE VIRTUAL TABLE " + name + " USING nacre(pool='" + pool + "', " + columns + ")";
}

/// What SQLite says of the plan, in one text.
std::string PlanOf(SqlConnection* connection, const std::string& sql) {
  std::string plan;
  for (const std::string& row : connection->Query("EXPLAIN QUERY PLAN " + sql)) plan += row + '\n';
  return plan;
}

class PlanTest : public testing::Test {
 protected:
  PlanTest() {
    connection_.Query(
        CreateWithColumns("t", kPlanPool,
                          "id INTEGER PRIMARY KEY, name TEXT, n INT, word TEXT COLLATE NOCASE, "
                          "any, INDEX(name), INDEX(n DESC, name), INDEX(word), UNIQUE(any)"));
    connection_.Query(
        "WITH RECURSIVE i(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM i LIMIT 1000) "
        "INSERT INTO t SELECT k, '2026-' || (k % 50), k % 7, 'Word' || k, "
        "CASE k % 3 WHEN 0 THEN k WHEN 1 THEN '' || k ELSE 'x' || k END FROM i");
    connection_.Query("UPDATE t SET word = x'776f726439' WHERE id = 500");  // "word9".
  }

  /// The plan has `words`, nothing is sorted, and the rows are those of the statement without keys.
  void Expect(const std::string& sql, const std::string& words) {
    const std::string plan = PlanOf(&connection_, sql);
    EXPECT_NE(plan.find(words), std::string::npos) << sql << '\n' << plan;
    EXPECT_EQ(plan.find("TEMP B-TREE"), std::string::npos) << sql << '\n' << plan;
    const std::string scan = std::regex_replace(sql, std::regex("\\b(name|n|word|any)\\b"), "+$1");
    Rows rows = connection_.Query(sql);
    Rows scanned = connection_.Query(scan);
    EXPECT_NE(rows, Rows()) << sql;
    if (sql.find("ORDER BY") == std::string::npos) {
      std::sort(rows.begin(), rows.end());
      std::sort(scanned.begin(), scanned.end());
    }
    EXPECT_EQ(rows, scanned) << sql;
  }

  SqlConnection connection_{SqlTables::kNacre};
};

TEST_F(PlanTest, AnIndexGivesOrdersOfMixedDirectionsBothWays) {
  Expect("SELECT id FROM t WHERE n > 2 ORDER BY n DESC, name, id", "INDEX 2:|>--f");
  Expect("SELECT id FROM t WHERE n <= 4 ORDER BY n, name DESC, id DESC", "INDEX 2:|-l-b");
  Expect("SELECT id FROM t WHERE n = 4 ORDER BY name DESC, id DESC", "INDEX 2:e|---b");
}

TEST_F(PlanTest, ListsAreLookedForByKey) {
  Expect("SELECT id FROM t WHERE name IN ('2026-3', 'none', NULL, '2026-17') ORDER BY name, id",
         "INDEX 1:n");
  Expect("SELECT id FROM t WHERE word IN ('WORD7', 'word8', x'776f726439')", "INDEX 3:n");
  Expect("SELECT id FROM t WHERE any IN (3, '4', 'x5', 6.0, 7)", "INDEX 4:n");
  Expect("SELECT id FROM t WHERE any IN (SELECT '4' UNION ALL SELECT 3 UNION ALL SELECT 'x8')",
         "INDEX 4:n");
  Expect(
      "SELECT id FROM t WHERE n IN (2, 5) AND name IN ('2026-2', '2026-5') ORDER BY n DESC, "
      "name, id",
      "INDEX 2:nn");
  Expect("SELECT n FROM t WHERE id IN (900, 5, 70, 2000) ORDER BY id DESC", "INDEX 0:n|---b");
}

TEST_F(PlanTest, PatternsAreRanges) {
  Expect("SELECT id FROM t WHERE name LIKE '2026-1%'", "INDEX 1:|--L");
  Expect("SELECT id FROM t WHERE name GLOB '2026-1[0-4]'", "INDEX 1:|--G");
  Expect("SELECT id FROM t WHERE word LIKE 'wORD9%'", "INDEX 3:|--L");
  // A function of the application's may match anything.
  sqlite3_create_function(
      connection_.get(), "like", 2, SQLITE_UTF8, nullptr,
      [](sqlite3_context* context, int, sqlite3_value**) { sqlite3_result_int(context, 1); },
      nullptr, nullptr);
  EXPECT_EQ(connection_.Query("SELECT count(*) FROM t WHERE name LIKE '2026-1%'"), Rows{"i:1000|"});
}

TEST_F(PlanTest, AlternativesAreLookedForOneByOne) {
  Expect("SELECT id FROM t WHERE name = '2026-3' OR word = 'word77' OR id = 5", "MULTI-INDEX OR");
}

TEST_F(PlanTest, AnOffsetIsPassedOverInTheIndex) {
  Expect("SELECT * FROM t WHERE name >= '2026-1' ORDER BY name, id LIMIT 5 OFFSET 300", "INDEX 1:");
  Expect(
      "SELECT count(*) FROM (SELECT * FROM t WHERE n = 2 UNION ALL SELECT * FROM t WHERE n = 3 "
      "LIMIT 20 OFFSET 200)",
      "INDEX 2:e|---f-KLO");
}

constexpr char kOrders[] =
    "id INTEGER PRIMARY KEY, state TEXT, customer INT, INDEX(state), "
    "INDEX(customer)";
constexpr char kCustomers[] = "id INTEGER PRIMARY KEY, country TEXT, city TEXT, INDEX(country)";
constexpr char kJoin[] =
    "SELECT count(*) FROM orders JOIN customers ON customers.id = orders.customer "
    "WHERE orders.state = 'open' AND customers.country = 'c7'";

void FillForPlans(SqlConnection* connection) {
  connection->Query(
      "WITH RECURSIVE i(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM i LIMIT 5000) "
      "INSERT INTO orders SELECT k, CASE k % 2 WHEN 0 THEN 'open' ELSE 'done' END, k % 1000 FROM "
      "i");
  connection->Query(
      "WITH RECURSIVE i(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM i LIMIT 1000) "
      "INSERT INTO customers SELECT k, 'c' || (k % 100), 'city' FROM i");
}

/// The table that the join reads first.
std::string Outer(SqlConnection* connection) {
  const std::string plan = PlanOf(connection, kJoin);
  return plan.find("orders") < plan.find("customers") ? "orders" : "customers";
}

TEST(AnalyzeTest, CountsDecideIndexesAndTheOrderOfJoins) {
  SqlConnection connection(SqlTables::kNacre);
  connection.Query(CreateWithColumns("orders", kPlanPool, kOrders));
  connection.Query(CreateWithColumns("customers", kPlanPool, kCustomers));
  FillForPlans(&connection);
  const std::string both = "SELECT id FROM orders WHERE state = 'open' AND customer = 42";
  const Rows rows = connection.Query(both);
  const Rows joined = connection.Query(kJoin);
  // Half of the orders are open, but an index of one column looks as good as another.
  EXPECT_NE(PlanOf(&connection, both).find("INDEX 1:"), std::string::npos);
  EXPECT_EQ(Outer(&connection), "orders");
  EXPECT_EQ(connection.Query("SELECT nacre_analyze('orders') + nacre_analyze('customers', 500)"),
            Rows{"i:5|"});
  EXPECT_NE(PlanOf(&connection, both).find("INDEX 2:"), std::string::npos);
  EXPECT_EQ(Outer(&connection), "customers");
  EXPECT_EQ(connection.Query(both), rows);
  EXPECT_EQ(connection.Query(kJoin), joined);
  // What is counted no longer holds: the answers do.
  connection.Query("UPDATE orders SET state = 'done' WHERE id <> 42");
  EXPECT_EQ(connection.Query(both), Rows{"i:42|"});
  EXPECT_EQ(connection.Query(kJoin), Rows{"i:0|"});
  EXPECT_EQ(connection.Run("SELECT nacre_analyze('nobody')").code, SQLITE_ERROR);
}

TEST(AnalyzeTest, CountsOutliveTheirOwner) {
  MemnodeProcessOptions options;
  options.size = "1GiB";
  options.slab_size = "64MiB";  // Databases ask for this size.
  const MemnodeProcesses nodes(2, options);
  for (const bool first : {true, false}) {
    SqlConnection connection(SqlTables::kNacre);
    connection.Query(CreateWithColumns("orders", nodes.pool_uri(), kOrders));
    connection.Query(CreateWithColumns("customers", nodes.pool_uri(), kCustomers));
    if (first) {
      FillForPlans(&connection);
      EXPECT_EQ(Outer(&connection), "orders");
      connection.Query("SELECT nacre_analyze('orders'), nacre_analyze('customers')");
    }
    EXPECT_EQ(Outer(&connection), "customers");
  }
}

}  // namespace
}  // namespace nacre
