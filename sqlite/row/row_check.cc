#include "sqlite/row/row_check.h"

namespace nacre::sqlite {
namespace {

std::string KeyColumns(const Declaration& declaration) {
  std::string names;
  for (const KeyColumn& part : declaration.primary_key) {
    if (!names.empty()) names += ", ";
    names += Quoted(declaration.columns[static_cast<size_t>(part.column)].name);
  }
  return names;
}

std::string CreateSql(const Declaration& declaration) {
  std::string sql = "CREATE TABLE x(" + declaration.ColumnList();
  if (!declaration.primary_key.empty()) {
    sql += ", PRIMARY KEY(" + KeyColumns(declaration) + ')';
  }
  for (const std::string& check : declaration.checks) sql += ", " + check;
  return sql + (declaration.HasRowid() ? ")" : ") WITHOUT ROWID");
}

std::string InsertSql(const Declaration& declaration) {
  std::string columns;
  std::string values;
  for (const ColumnDeclaration& column : declaration.columns) {
    columns += Quoted(column.name) + ", ";
    values += "?, ";
  }
  if (declaration.primary_key.empty()) {  // Rows are only numbered.
    columns += "rowid";
    values += '?';
  } else {
    columns.resize(columns.size() - 2);
    values.resize(values.size() - 2);
  }
  return "INSERT INTO x(" + columns + ") VALUES(" + values + ')';
}

void Bind(sqlite3_stmt* statement, int place, const Value& value) {
  const char* const bytes = value.bytes.data() == nullptr ? "" : value.bytes.data();
  switch (value.type) {
    case ValueType::kNull:
      sqlite3_bind_null(statement, place);
      return;
    case ValueType::kInteger:
      sqlite3_bind_int64(statement, place, value.integer);
      return;
    case ValueType::kReal:
      sqlite3_bind_double(statement, place, value.real);
      return;
    case ValueType::kText:
      sqlite3_bind_text64(statement, place, bytes, value.bytes.size(), SQLITE_STATIC, SQLITE_UTF8);
      return;
    case ValueType::kBlob:
      sqlite3_bind_blob64(statement, place, bytes, value.bytes.size(), SQLITE_STATIC);
  }
}

}  // namespace

Status RowCheck::Open(const Declaration& declaration, std::unique_ptr<RowCheck>* check) {
  if (declaration.checks.empty()) return Status::OK();
  std::unique_ptr<RowCheck> opened(new RowCheck());
  NACRE_RETURN_IF_ERROR(opened->Prepare(declaration));
  *check = std::move(opened);
  return Status::OK();
}

RowCheck::~RowCheck() {
  sqlite3_finalize(insert_);
  sqlite3_finalize(clear_);
  sqlite3_close(connection_);
}

Status RowCheck::Prepare(const Declaration& declaration) {
  int code =
      sqlite3_open_v2(":memory:", &connection_,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  const auto prepare = [this](const std::string& sql, sqlite3_stmt** statement) {
    return sqlite3_prepare_v3(connection_, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, statement,
                              nullptr);
  };
  if (code == SQLITE_OK) {
    code = sqlite3_exec(connection_, CreateSql(declaration).c_str(), nullptr, nullptr, nullptr);
  }
  // The row stays only until the next one, and no other connection sees it.
  if (code == SQLITE_OK) code = sqlite3_exec(connection_, "BEGIN", nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) code = prepare(InsertSql(declaration), &insert_);
  if (code == SQLITE_OK) code = prepare("DELETE FROM x", &clear_);
  if (code == SQLITE_OK) return Status::OK();
  return Status::InvalidArgument(sqlite3_errmsg(connection_));
}

int RowCheck::Try(const std::vector<Value>& values, int64_t rowid, std::string* message) {
  int place = 0;
  for (const Value& value : values) Bind(insert_, ++place, value);
  if (sqlite3_bind_parameter_count(insert_) > place) sqlite3_bind_int64(insert_, ++place, rowid);
  sqlite3_step(insert_);
  const int code = sqlite3_reset(insert_);
  if (code != SQLITE_OK) {
    *message = sqlite3_errmsg(connection_);
    return code & 0xff;
  }
  sqlite3_step(clear_);
  return sqlite3_reset(clear_);
}

}  // namespace nacre::sqlite
