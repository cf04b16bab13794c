#include "tests/support/sql/sql_ledger.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

namespace nacre {
namespace {

constexpr uint64_t kAccounts = 20;
constexpr auto kMostPatience = std::chrono::seconds(60);

const SqlTableText kLedgerTables[] = {
    {"done", "writer INTEGER PRIMARY KEY, n INT", nullptr},
    {"account", "id INTEGER PRIMARY KEY, balance INT", nullptr},
    {"entry", "writer INT, n INT, k INT, account INT, amount INT, PRIMARY KEY(writer, n, k)",
     "account"},
    {"latest", "id INTEGER PRIMARY KEY, name TEXT, n INT, UNIQUE(name)", nullptr},
};

std::string Text(uint64_t number) { return std::to_string(number); }

}  // namespace

SqlLedger::SqlLedger(SqlTables tables, const std::string& options, uint64_t seed)
    : seed_(seed), connection_(tables) {
  Create(tables, options);
  connection_.Query("WITH RECURSIVE i(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM i LIMIT " +
                    Text(kAccounts) +
                    ") INSERT OR IGNORE INTO account SELECT k, 0 FROM i "
                    "WHERE k NOT IN (SELECT id FROM account)");
}

void SqlLedger::Create(SqlTables tables, const std::string& options) {
  const auto start = std::chrono::steady_clock::now();
  for (const SqlTableText& table : kLedgerTables) {
    const std::string name = table.name;
    if (tables == SqlTables::kNative) {
      connection_.Query("CREATE TABLE " + name + "(" + table.columns + ")");
      continue;
    }
    const std::string index =
        table.index == nullptr ? "" : std::string(", INDEX(") + table.index + ")";
    // The nodes may be about to notice that the last owner is gone.
    while (!Execute("CREATE VIRTUAL TABLE " + name + " USING nacre(" + options + table.columns +
                    index + ")") &&
           code_ == SQLITE_BUSY && std::chrono::steady_clock::now() - start < kMostPatience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(code_, SQLITE_OK) << message_;
  }
}

bool SqlLedger::Execute(const std::string& sql) {
  const SqlOutcome outcome = connection_.Run(sql);
  code_ = outcome.code;
  if (code_ != SQLITE_OK) message_ = sql + ": " + outcome.message;
  return code_ == SQLITE_OK;
}

uint64_t SqlLedger::Done(uint64_t writer) {
  const std::vector<std::string> rows =
      connection_.Query("SELECT n FROM done WHERE writer = " + Text(writer));
  return rows.empty() ? 0 : std::stoull(rows[0].substr(2));
}

bool SqlLedger::TryOnce(uint64_t writer, uint64_t number) {
  std::mt19937_64 random((seed_ * 1'000'003 + writer) * 1'000'003 + number);
  if (!Execute("BEGIN")) return false;
  const uint64_t lines = 1 + random() % 4;
  for (uint64_t k = 0; k < lines; ++k) {
    const std::string account = Text(1 + random() % kAccounts);
    const std::string amount = Text(random() % 1000);
    if (!Execute("INSERT INTO entry VALUES(" + Text(writer) + ", " + Text(number) + ", " + Text(k) +
                 ", " + account + ", " + amount + ")") ||
        !Execute("UPDATE account SET balance = balance + " + amount + " WHERE id = " + account)) {
      return false;
    }
  }
  const std::string mine = "writer = " + Text(writer);
  if (random() % 5 == 0 &&
      (!Execute("SAVEPOINT s") || !Execute("DELETE FROM entry WHERE " + mine) ||
       !Execute("ROLLBACK TO s"))) {
    return false;
  }
  // Takes the place of up to two rows.
  const std::string id = Text(writer * 100 + number % 7);
  if (!Execute("INSERT OR REPLACE INTO latest VALUES(" + id + ", '" + Text(writer) + "/" +
               Text(number % 5) + "', " + Text(number) + ")")) {
    return false;
  }
  if (random() % 4 == 0 &&
      !Execute("DELETE FROM latest WHERE id = " + Text(writer * 100 + random() % 7))) {
    return false;
  }
  return Execute("INSERT OR REPLACE INTO done VALUES(" + Text(writer) + ", " + Text(number) +
                 ")") &&
         Execute("COMMIT");
}

bool SqlLedger::Run(uint64_t writer, uint64_t number) {
  while (!TryOnce(writer, number)) {
    const int code = code_;
    const std::string message = message_;
    if (sqlite3_get_autocommit(connection_.get()) == 0) Execute("ROLLBACK");
    code_ = code;
    message_ = message;
    if (code != SQLITE_BUSY) return false;
  }
  return true;
}

std::vector<std::string> SqlLedger::Contents() {
  std::vector<std::string> all;
  for (const char* query :
       {"SELECT * FROM done ORDER BY writer", "SELECT * FROM account ORDER BY id",
        "SELECT * FROM entry ORDER BY writer, n, k",
        "SELECT writer, n, k FROM entry WHERE account >= 0 ORDER BY account, writer, n, k",
        "SELECT * FROM latest ORDER BY id", "SELECT id FROM latest ORDER BY name"}) {
    const std::vector<std::string> rows = connection_.Query(query);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace nacre
