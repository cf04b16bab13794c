#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/sql/sql_connection.h"

namespace nacre {

/// Transactions of which it can be told afterwards which ones took place. Each writer has its own,
/// numbered from 1, and what one does follows from the seed alone; those of different writers may
/// take place in any order. So a database holds what it should if SQLite's own tables hold the same
/// after as many transactions of each writer.
///
/// Thread safety: none; a connection for each thread.
class SqlLedger {
 public:
  /// `options`: of the tables of kNacre, "name='value', ". Tables are made, or found; while others
  /// have the database open, that is tried again.
  SqlLedger(SqlTables tables, const std::string& options, uint64_t seed);

  /// How many transactions of the writer there are.
  uint64_t Done(uint64_t writer);
  /// The next one of `writer`, which is `number`, again and again until it meets no conflict. False
  /// if something else goes wrong, which `message` then says.
  bool Run(uint64_t writer, uint64_t number);
  /// Rows of all tables, by several ways to them.
  std::vector<std::string> Contents();

  const std::string& message() const { return message_; }
  SqlConnection& connection() { return connection_; }

 private:
  void Create(SqlTables tables, const std::string& options);
  bool Execute(const std::string& sql);
  bool TryOnce(uint64_t writer, uint64_t number);

  const uint64_t seed_;
  SqlConnection connection_;
  int code_ = SQLITE_OK;
  std::string message_;
};

}  // namespace nacre
