#include "tests/support/sql_connection.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>

namespace nacre {
namespace {

std::string FolderOfTest() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  const std::string file(path, size > 0 ? static_cast<size_t>(size) : 0);
  return file.substr(0, file.rfind('/'));
}

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

SqlConnection::SqlConnection(const std::string& file) {
  EXPECT_EQ(sqlite3_open(file.c_str(), &connection_), SQLITE_OK);
}

SqlConnection::~SqlConnection() { EXPECT_EQ(sqlite3_close(connection_), SQLITE_OK); }

void SqlConnection::LoadNacre() {
  char* message = nullptr;
  sqlite3_enable_load_extension(connection_, 1);
  const std::string file = FolderOfTest() + "/nacre_sqlite.so";
  ASSERT_EQ(sqlite3_load_extension(connection_, file.c_str(), nullptr, &message), SQLITE_OK)
      << (message == nullptr ? "" : message);
}

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
