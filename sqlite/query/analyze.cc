#include "sqlite/query/analyze.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "sqlite/row/declaration_tokens.h"
#include "sqlite/table.h"

namespace nacre::sqlite {
namespace {

void Analyze(sqlite3_context* context, int count, sqlite3_value** arguments) {
  const unsigned char* const text = sqlite3_value_text(arguments[0]);
  const std::string name = text == nullptr ? "" : reinterpret_cast<const char*>(text);
  const int64_t limit = count > 1 ? std::max<int64_t>(sqlite3_value_int64(arguments[1]), 0) : 0;
  Session* const session = static_cast<Session*>(sqlite3_user_data(context));
  size_t spaces = 0;
  for (Table* table : session->tables()) {
    if (!SameName(table->schema().name, name)) continue;
    const Status status = table->Analyze(static_cast<uint64_t>(limit));
    if (!status.ok()) {
      sqlite3_result_error(context, status.ToString().c_str(), -1);
      return sqlite3_result_error_code(context, ErrorCode(status));
    }
    spaces += table->schema().indexes.size() + 1;
  }
  if (spaces == 0) {
    const std::string message =
        "nacre_analyze: this connection has not used a table '" + name + "' of Nacre yet";
    return sqlite3_result_error(context, message.c_str(), -1);
  }
  sqlite3_result_int64(context, static_cast<int64_t>(spaces));
}

}  // namespace

int RegisterAnalyze(Session* session) {
  for (const int count : {1, 2}) {
    const int code = sqlite3_create_function_v2(session->connection(), "nacre_analyze", count,
                                                SQLITE_UTF8 | SQLITE_DIRECTONLY, session, Analyze,
                                                nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

}  // namespace nacre::sqlite
