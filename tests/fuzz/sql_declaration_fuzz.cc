// What stands between the parentheses of CREATE VIRTUAL TABLE: any text, an argument a line, is
// refused or makes a declaration. If SQLite takes the statement that is made of that, then with the
// same columns, since it asks tables for them by number.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "sqlite/row/declaration.h"
#include "sqlite/row/schema.h"
#include "tests/support/sql/sql_connection.h"

namespace {

using nacre::sqlite::Declaration;

/// What SQLite counts in the table that it makes of the statement; empty if it refuses.
std::string ColumnsOf(const std::string& create_table) {
  static nacre::SqlConnection connection(nacre::SqlTables::kNative);
  if (connection.Run(create_table).code != SQLITE_OK) return "";
  const nacre::SqlOutcome count = connection.Run("SELECT count(*) FROM pragma_table_info('x')");
  if (connection.Run("DROP TABLE x").code != SQLITE_OK || count.rows.size() != 1) std::abort();
  return count.rows[0];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> arguments = {"pool='embedded:'"};
  std::string argument;
  for (size_t i = 0; i < size; ++i) {
    const char c = static_cast<char>(data[i]);
    // SQLite hands over texts that end at the first zero.
    if (c != '\n' && c != '\0') {
      argument.push_back(c);
      continue;
    }
    arguments.push_back(argument);
    argument.clear();
  }
  arguments.push_back(argument);
  Declaration declaration;
  if (!Declaration::Parse(arguments, &declaration).ok()) return 0;
  std::vector<uint32_t> spaces(declaration.indexes.size() + 1);
  const nacre::sqlite::Schema schema("x", declaration, spaces);
  const int columns = schema.column_count() + (declaration.HasRowid() ? 0 : 1);
  const std::string found = ColumnsOf(declaration.CreateTable());
  if (!found.empty() && found != "i:" + std::to_string(columns) + "|") std::abort();
  return 0;
}
