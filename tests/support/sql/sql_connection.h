#pragma once

#include <sqlite3.h>

#include <string>
#include <vector>

namespace nacre {

/// What a statement answered: SQLite's primary code, its message, and the rows, each value with its
/// type before it.
struct SqlOutcome {
  int code = SQLITE_OK;
  std::string message;
  std::vector<std::string> rows;
};

/// Where the tables of a connection are.
enum class SqlTables { kNative, kNacre };

/// What makes a table.
struct SqlTableText {
  const char* name;
  const char* columns;
  const char* index;  ///< Columns of a secondary index, or null.
};

/// A connection of SQLite to a database in memory, or in `file`; with kNacre, the extension is
/// loaded into it. Failure to open fails the test.
class SqlConnection {
 public:
  explicit SqlConnection(SqlTables tables, const std::string& file = ":memory:");
  ~SqlConnection();
  SqlConnection(const SqlConnection&) = delete;
  SqlConnection& operator=(const SqlConnection&) = delete;

  sqlite3* get() { return connection_; }
  SqlOutcome Run(const std::string& sql);
  /// Fails the test unless it succeeds.
  std::vector<std::string> Query(const std::string& sql);

 private:
  sqlite3* connection_ = nullptr;
};

}  // namespace nacre
