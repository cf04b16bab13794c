// Goal: tables of Nacre answer as SQLite's own do.
// Method: random statements (tests/support/sql/sql_generator.h) run on two connections, one with
// tables of SQLite in memory, one with the same tables in Nacre. After each statement codes,
// messages, rows and counts of changes are compared, every so often the contents of all tables. A
// third connection has the same tables of Nacre open: it sees what was committed, and is told which
// of them are there no more. At the end each table is checked against its indexes. A seed replays a
// run; NACRE_TEST_SQL_STATEMENTS makes it longer.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/seed.h"
#include "tests/support/sql/sql_connection.h"
#include "tests/support/sql/sql_generator.h"

namespace nacre {
namespace {

/// All rows of all tables are compared after so many.
constexpr int kStatementsPerCheck = 5;
constexpr char kUniqueFailed[] = "UNIQUE constraint failed";

int Statements() {
  const char* const given = std::getenv("NACRE_TEST_SQL_STATEMENTS");
  return given == nullptr ? 3000 : std::atoi(given);
}

/// A row that breaks two unique keys may be told of either.
bool SameMessage(const SqlOutcome& native, const SqlOutcome& nacre) {
  return native.message == nacre.message ||
         (native.message.starts_with(kUniqueFailed) && nacre.message.starts_with(kUniqueFailed));
}

class Differential {
 public:
  Differential(uint64_t seed, const std::string& options)
      : generator_(seed, "embedded:?nodes=2&size=128MiB", options) {
    // SQLite 3.40's Bloom filters take 'a' and 'a ' for different under RTRIM.
    constexpr int kBloomFilter = 0x80000;
    sqlite3_test_control(SQLITE_TESTCTRL_OPTIMIZATIONS, native_.get(), kBloomFilter);
  }

  /// False once something differs, which fails the test.
  bool Step(int number) {
    const bool change_tables = number % 500 == 499;
    if (change_tables && sqlite3_get_autocommit(native_.get()) == 0) {
      if (!Compare({"COMMIT"})) return false;
    }
    if (!Compare(change_tables ? generator_.ChangeTables() : generator_.Next())) return false;
    if (number % kStatementsPerCheck != 0) return true;
    for (const SqlStatement& statement : generator_.Contents()) {
      if (!Compare(statement)) return false;
      if (sqlite3_get_autocommit(native_.get()) != 0 && !CompareBeside(statement)) return false;
    }
    return true;
  }

  void CheckTables() {
    for (const auto& [name, created] : created_) {
      EXPECT_EQ(nacre_.Query("SELECT * FROM nacre_integrity_check('" + name + "')"),
                std::vector<std::string>{"t:ok|"})
          << created;
    }
  }

 private:
  /// The third connection reads what the others do.
  bool CompareBeside(const SqlStatement& statement) {
    EXPECT_EQ(native_.Query(statement.native), beside_.Query(statement.native)) << last_;
    return !testing::Test::HasFailure();
  }

  /// After a statement that makes, renames or drops a table.
  void FollowBeside(const SqlStatement& statement) {
    std::vector<std::string> words;  // CREATE TABLE a(..., ALTER TABLE a RENAME TO b, DROP TABLE a
    for (size_t at = 0; at != std::string::npos && words.size() < 6;) {
      const size_t end = statement.native.find_first_of(" (", at);
      words.push_back(statement.native.substr(at, end - at));
      at = end == std::string::npos ? end : end + 1;
    }
    const std::string& name = words[2];
    if (words[0] == "CREATE") {
      created_[name] = statement.nacre.substr(statement.nacre.find(" USING "));
      beside_.Query(statement.nacre);
      return;
    }
    const SqlOutcome gone = beside_.Run("SELECT count(*) FROM " + name);
    EXPECT_EQ(gone.code, SQLITE_ERROR) << statement.native;
    EXPECT_EQ(gone.message, "no such table: " + name);
    beside_.Query("DROP TABLE " + name);
    auto created = created_.extract(name);
    if (words[0] == "DROP") return;
    created.key() = words[5];
    beside_.Query("CREATE VIRTUAL TABLE " + words[5] + created.mapped());
    created_.insert(std::move(created));
  }

  bool Compare(const SqlStatement& statement) {
    // Tables outlive no transaction that may undo them.
    const bool creates = !statement.nacre.empty();
    if (creates && sqlite3_get_autocommit(native_.get()) == 0 && !Compare({"COMMIT"})) return false;
    SqlOutcome native = native_.Run(statement.native);
    const std::string& nacre_sql = creates ? statement.nacre : statement.native;
    SqlOutcome nacre = nacre_.Run(nacre_sql);
    if (!statement.ordered) {
      std::sort(native.rows.begin(), native.rows.end());
      std::sort(nacre.rows.begin(), nacre.rows.end());
    }
    EXPECT_EQ(native.code, nacre.code) << native.message << " / " << nacre.message;
    EXPECT_TRUE(SameMessage(native, nacre)) << native.message << " / " << nacre.message;
    EXPECT_EQ(native.rows, nacre.rows);
    EXPECT_EQ(sqlite3_get_autocommit(native_.get()), sqlite3_get_autocommit(nacre_.get()));
    if (statement.native.starts_with("INSERT") || statement.native.starts_with("UPDATE") ||
        statement.native.starts_with("DELETE")) {
      EXPECT_EQ(sqlite3_changes(native_.get()), sqlite3_changes(nacre_.get()));
    }
    const bool changes_tables =
        creates || statement.native.starts_with("DROP") || statement.native.starts_with("ALTER");
    if (changes_tables && !testing::Test::HasFailure()) FollowBeside(statement);
    if (!testing::Test::HasFailure()) {
      if (!statement.ordered) last_ = nacre_sql;
      return true;
    }
    ADD_FAILURE() << nacre_sql << "\nafter " << last_;
    return false;
  }

  SqlConnection native_{SqlTables::kNative};
  SqlConnection nacre_{SqlTables::kNacre};
  SqlConnection beside_{SqlTables::kNacre};
  std::map<std::string, std::string> created_;  ///< What follows on the name of each table.
  SqlGenerator generator_;
  std::string last_;  ///< The last statement that may have changed something.
};

class DifferentialTest : public testing::TestWithParam<int> {};

TEST_P(DifferentialTest, AnswersAsSqlitesOwnTables) {
  const uint64_t seed = static_cast<uint64_t>(GetParam());
  // A database, and a keyspace.
  Differential differential(TestSeed(seed), seed % 2 == 0 ? "sharded='on', " : "");
  const int statements = Statements();
  for (int i = 0; i < statements; ++i) ASSERT_TRUE(differential.Step(i)) << "statement " << i;
  differential.CheckTables();
}

INSTANTIATE_TEST_SUITE_P(Seeds, DifferentialTest, testing::Range(1, 5));

}  // namespace
}  // namespace nacre
