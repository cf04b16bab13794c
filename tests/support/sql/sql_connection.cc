#include "tests/support/sql/sql_connection.h"

#include <gtest/gtest.h>

extern "C" int sqlite3_nacresqlite_init(sqlite3* connection, char** message,
                                        const sqlite3_api_routines* api);

namespace nacre {
namespace {

/// The entry point as sqlite3_auto_extension has it, to be called at the next opening.
void (*const kEntryPoint)() = reinterpret_cast<void (*)()>(sqlite3_nacresqlite_init);

std::string ValueText(sqlite3_stmt* statement, int column) {
  const unsigned char* const text = sqlite3_column_text(statement, column);
  const std::string bytes(text == nullptr ? "" : reinterpret_cast<const char*>(text),
                          static_cast<size_t>(sqlite3_column_bytes(statement, column)));
  return bytes;
}

std::string RowText(sqlite3_stmt* statement) {
  constexpr char kTypes[] = "?irtbn";  // SQLITE_INTEGER is 1, and so on.
  std::string row;
  for (int i = 0; i < sqlite3_column_count(statement); ++i) {
    row += kTypes[sqlite3_column_type(statement, i)];
    row += ':' + ValueText(statement, i) + '|';
  }
  return row;
}

}  // namespace

SqlConnection::SqlConnection(SqlTables tables, const std::string& file) {
  if (tables == SqlTables::kNacre) sqlite3_auto_extension(kEntryPoint);
  EXPECT_EQ(sqlite3_open(file.c_str(), &connection_), SQLITE_OK);
  if (tables == SqlTables::kNacre) sqlite3_cancel_auto_extension(kEntryPoint);
}

SqlConnection::~SqlConnection() { EXPECT_EQ(sqlite3_close(connection_), SQLITE_OK); }

SqlOutcome SqlConnection::Run(const std::string& sql) {
  SqlOutcome outcome;
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(connection_, sql.c_str(), -1, &statement, nullptr);
  if (code == SQLITE_OK) {
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      outcome.rows.push_back(RowText(statement));
    }
  }
  if (code != SQLITE_DONE) {
    outcome.code = code & 0xff;
    outcome.message = sqlite3_errmsg(connection_);
  }
  sqlite3_finalize(statement);
  return outcome;
}

std::vector<std::string> SqlConnection::Query(const std::string& sql) {
  const SqlOutcome outcome = Run(sql);
  EXPECT_EQ(outcome.code, SQLITE_OK) << sql << ": " << outcome.message;
  return outcome.rows;
}

}  // namespace nacre
