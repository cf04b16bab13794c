// Goal: tables of Nacre answer as SQLite's own do.
// Method: random statements (tests/support/sql_generator.h) run on two connections, one with tables
// of SQLite in memory, one with the same tables in Nacre. After each statement codes, messages,
// rows and counts of changes are compared, every so often the contents of all tables. A seed
// replays a run; NACRE_TEST_SQL_STATEMENTS makes it longer.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/seed.h"
#include "tests/support/sql_connection.h"
#include "tests/support/sql_generator.h"

namespace nacre {
namespace {

/// All rows of all tables are compared after so many.
constexpr int kStatementsPerCheck = 5;
constexpr char kUnique[] = "UNIQUE constraint failed";

int Statements() {
  const char* const given = std::getenv("NACRE_TEST_SQL_STATEMENTS");
  return given == nullptr ? 3000 : std::atoi(given);
}

/// A row that breaks two unique keys may be told of either.
bool SameMessage(const SqlOutcome& native, const SqlOutcome& nacre) {
  return native.message == nacre.message ||
         (native.message.starts_with(kUnique) && nacre.message.starts_with(kUnique));
}

class Differential {
 public:
  explicit Differential(uint64_t seed) : generator_(seed, "embedded:?nodes=2&size=128MiB") {
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
    }
    return true;
  }

 private:
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
    if (!testing::Test::HasFailure()) {
      if (!statement.ordered) last_ = nacre_sql;
      return true;
    }
    ADD_FAILURE() << nacre_sql << "\nafter " << last_;
    return false;
  }

  SqlConnection native_{SqlTables::kNative};
  SqlConnection nacre_{SqlTables::kNacre};
  SqlGenerator generator_;
  std::string last_;  ///< The last statement that may have changed something.
};

class DifferentialTest : public testing::TestWithParam<int> {};

TEST_P(DifferentialTest, AnswersAsSqlitesOwnTables) {
  Differential differential(TestSeed(static_cast<uint64_t>(GetParam())));
  const int statements = Statements();
  for (int i = 0; i < statements; ++i) ASSERT_TRUE(differential.Step(i)) << "statement " << i;
}

INSTANTIATE_TEST_SUITE_P(Seeds, DifferentialTest, testing::Range(1, 5));

}  // namespace
}  // namespace nacre
