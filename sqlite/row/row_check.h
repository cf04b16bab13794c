#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sqlite/row/declaration.h"
#include "sqlite/sqlite_api.h"

namespace nacre::sqlite {

/// The CHECK conditions of a table. SQLite itself evaluates them: a row is tried out in a table of
/// a connection of its own, with the same columns and conditions, so that types, collations and
/// messages are SQLite's. That connection has SQLite's functions and none of the application's.
///
/// Thread safety: none; SQLite uses a connection from one thread at a time.
class RowCheck {
 public:
  /// `*check` stays null if there are no conditions. `InvalidArgument` with SQLite's words if it
  /// does not take one.
  static Status Open(const Declaration& declaration, std::unique_ptr<RowCheck>* check);
  ~RowCheck();
  RowCheck(const RowCheck&) = delete;
  RowCheck& operator=(const RowCheck&) = delete;

  /// SQLITE_OK if a row with `values`, which are converted, fulfils all conditions. Else SQLite's
  /// code, with its message in `*message`. `rowid` counts if rows have numbers.
  int Try(const std::vector<Value>& values, int64_t rowid, std::string* message);

 private:
  RowCheck() = default;
  Status Prepare(const Declaration& declaration);

  sqlite3* connection_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_stmt* clear_ = nullptr;
};

}  // namespace nacre::sqlite
