// Statements on tables of Nacre against the same on SQLite's own tables in memory. The pool is two
// nacre-memnode processes of this host over shm. Argument 0: SQLite's own; 1: Nacre. What commits
// cost: 0 with the log on the nodes, 1 with a command log, 2 with one in memory, as on a disk that
// takes no time, 3 with neither; then the connections.

#include <benchmark/benchmark.h>
#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/process/memnode_process.h"
#include "tests/support/sql/sql_connection.h"
#include "tests/support/sql/sql_tpcc.h"
#include "tests/support/temp_folder.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

constexpr int kRows = 500'000;
constexpr char kColumns[] = "id INTEGER PRIMARY KEY, customer INT, at TEXT, total REAL";

/// Options of two nodes, each with one half.
MemnodeProcessOptions TwoGibibytes() {
  MemnodeProcessOptions options;
  options.size = "1GiB";
  options.slab_size = "64MiB";
  return options;
}

/// A prepared statement.
class Prepared {
 public:
  Prepared(SqlConnection* connection, const std::string& sql) {
    sqlite3_prepare_v3(connection->get(), sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement_,
                       nullptr);
  }
  ~Prepared() { sqlite3_finalize(statement_); }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  sqlite3_stmt* get() { return statement_; }
  /// Reads all columns of all rows. The rows.
  int Run() {
    int rows = 0;
    while (sqlite3_step(statement_) == SQLITE_ROW) {
      ++rows;
      for (int i = 0; i < sqlite3_column_count(statement_); ++i) {
        Read(i);
      }
    }
    sqlite3_reset(statement_);
    return rows;
  }

 private:
  void Read(int column) {
    switch (sqlite3_column_type(statement_, column)) {
      case SQLITE_INTEGER:
        return benchmark::DoNotOptimize(sqlite3_column_int64(statement_, column));
      case SQLITE_FLOAT:
        return benchmark::DoNotOptimize(sqlite3_column_double(statement_, column));
      default:
        benchmark::DoNotOptimize(sqlite3_column_text(statement_, column));
    }
  }

  sqlite3_stmt* statement_ = nullptr;
};

/// Both tables, filled once. The MemTables are so small that nearly all rows are on the nodes.
class Tables {
 public:
  static Tables& Get() {
    // Destroyed at the end, so that the nodes end with the program.
    static Tables tables;
    return tables;
  }
  SqlConnection& of(int64_t engine) { return engine == 0 ? native_ : nacre_; }

 private:
  Tables() : nodes_(2, TwoGibibytes()) {
    const std::string pool = nodes_.pool_uri();
    for (const char* name : {"orders", "inserted"}) {
      native_.Run(std::string("CREATE TABLE ") + name + "(" + kColumns + ")");
      const SqlOutcome outcome =
          nacre_.Run(std::string("CREATE VIRTUAL TABLE ") + name + " USING nacre(pool='" + pool +
                     "', write_buffer_size=4000000, " + kColumns + ")");
      if (outcome.code != SQLITE_OK) std::fprintf(stderr, "%s\n", outcome.message.c_str());
    }
    for (SqlConnection* connection : {&native_, &nacre_}) {
      connection->Run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT " +
                      std::to_string(kRows) +
                      ") INSERT INTO orders SELECT i, i % 1000, 'at ' || i, i * 0.25 FROM n");
    }
  }

  MemnodeProcesses nodes_;
  SqlConnection native_{SqlTables::kNative};
  SqlConnection nacre_{SqlTables::kNacre};
};

void PointSelect(benchmark::State& state) {
  Prepared select(&Tables::Get().of(state.range(0)), "SELECT * FROM orders WHERE id = ?");
  std::mt19937_64 random(1);
  int64_t rows = 0;
  for (auto _ : state) {
    sqlite3_bind_int64(select.get(), 1, 1 + static_cast<int64_t>(random() % kRows));
    rows += select.Run();
  }
  if (rows != state.iterations()) state.SkipWithError("rows are missing");
}

void RangeSelect(benchmark::State& state) {
  Prepared select(&Tables::Get().of(state.range(0)),
                  "SELECT * FROM orders WHERE id >= ? AND id < ?");
  std::mt19937_64 random(1);
  int64_t rows = 0;
  for (auto _ : state) {
    const int64_t first = 1 + static_cast<int64_t>(random() % (kRows - 100));
    sqlite3_bind_int64(select.get(), 1, first);
    sqlite3_bind_int64(select.get(), 2, first + 100);
    rows += select.Run();
  }
  if (rows != 100 * state.iterations()) state.SkipWithError("rows are missing");
}

void InsertBatch(benchmark::State& state) {
  SqlConnection& connection = Tables::Get().of(state.range(0));
  Prepared insert(&connection, "INSERT INTO inserted VALUES(?, ?, ?, ?)");
  connection.Run("DELETE FROM inserted");
  int64_t id = 0;
  for (auto _ : state) {
    connection.Run("BEGIN");
    for (int i = 0; i < 1000; ++i) {
      sqlite3_bind_int64(insert.get(), 1, ++id);
      sqlite3_bind_int64(insert.get(), 2, id % 1000);
      sqlite3_bind_text(insert.get(), 3, "2026-01-01 00:00", -1, SQLITE_STATIC);
      sqlite3_bind_double(insert.get(), 4, static_cast<double>(id) * 0.25);
      insert.Run();
    }
    connection.Run("COMMIT");
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}

void Tpcc(benchmark::State& state) {
  const MemnodeProcesses nodes(2, TwoGibibytes());
  TpccClient::Scale scale;
  scale.customers = 300;
  scale.items = 10'000;
  TpccClient client(state.range(0) == 0 ? SqlTables::kNative : SqlTables::kNacre, nodes.pool_uri(),
                    scale, 1);
  client.Load();
  for (auto _ : state) {
    if (!client.RunOne()) return state.SkipWithError("a transaction failed");
  }
  state.SetItemsProcessed(state.iterations());
}

std::string LogFolder(int64_t log) {
  return log == 2 ? MemoryFolder() : std::filesystem::temp_directory_path().string();
}

/// Options of tables over `pool` with the log that argument 0 says, which lies in `folder`.
std::string LoggedOptions(int64_t log, const std::string& pool, const TempFolder& folder) {
  const std::string options = "pool='" + pool + "', ";
  if (log == 0) return options;
  return options + (log < 3 ? "command_log='" + folder.File("log") + "', " : "remote_log='off', ");
}

/// One row each, in a transaction of its own, by several connections.
void LoggedInserts(benchmark::State& state) {
  const MemnodeProcesses nodes(2, TwoGibibytes());
  const TempFolder folder(LogFolder(state.range(0)));
  const std::string create = std::string("CREATE VIRTUAL TABLE inserted USING nacre(") +
                             LoggedOptions(state.range(0), nodes.pool_uri(), folder) + kColumns +
                             ")";
  constexpr int64_t kEach = 200;  // Transactions of each connection in one turn.
  const auto connections = static_cast<size_t>(state.range(1));
  std::vector<std::unique_ptr<SqlConnection>> all;
  for (size_t i = 0; i < connections; ++i) {
    all.push_back(std::make_unique<SqlConnection>(SqlTables::kNacre));
    all.back()->Query(create);
  }
  int64_t turn = 0;
  for (auto _ : state) {
    RunTogether("insert", connections, [&](size_t connection) {
      Prepared insert(all[connection].get(), "INSERT INTO inserted VALUES(?, ?, ?, ?)");
      for (int64_t i = 0; i < kEach; ++i) {
        const int64_t id = (turn * kEach + i) * 64 + static_cast<int64_t>(connection);
        sqlite3_bind_int64(insert.get(), 1, id);
        sqlite3_bind_int64(insert.get(), 2, id % 1000);
        sqlite3_bind_text(insert.get(), 3, "2026-01-01 00:00", -1, SQLITE_STATIC);
        sqlite3_bind_double(insert.get(), 4, static_cast<double>(id) * 0.25);
        insert.Run();
      }
    });
    ++turn;
  }
  state.SetItemsProcessed(state.iterations() * kEach * state.range(1));
}

void LoggedTpcc(benchmark::State& state) {
  const MemnodeProcesses nodes(2, TwoGibibytes());
  const TempFolder folder(LogFolder(state.range(0)));
  TpccClient::Scale scale;
  scale.customers = 300;
  scale.items = 10'000;
  scale.options = LoggedOptions(state.range(0), nodes.pool_uri(), folder);
  TpccClient client(SqlTables::kNacre, "", scale, 1);
  client.Load();
  for (auto _ : state) {
    if (!client.RunOne()) return state.SkipWithError("a transaction failed");
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(LoggedInserts)->ArgsProduct({{0, 1, 2, 3}, {1, 8}})->Iterations(10)->UseRealTime();
BENCHMARK(LoggedTpcc)->DenseRange(0, 3)->Iterations(2000)->UseRealTime();
BENCHMARK(Tpcc)->Arg(0)->Arg(1)->Iterations(5000);
BENCHMARK(PointSelect)->Arg(0)->Arg(1);
BENCHMARK(RangeSelect)->Arg(0)->Arg(1);
BENCHMARK(InsertBatch)->Arg(0)->Arg(1)->Iterations(300);

}  // namespace
}  // namespace nacre
