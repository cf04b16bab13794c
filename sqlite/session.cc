#include "sqlite/session.h"

#include <string>
#include <utility>

#include "sqlite/row/declaration_tokens.h"
#include "sqlite/table.h"

namespace nacre::sqlite {
namespace {

constexpr char kJoin[] = "DELETE FROM temp.nacre_transaction";
constexpr char kOwnPatterns[] =
    "SELECT 1 FROM pragma_function_list WHERE NOT builtin AND name IN ('like', 'glob')";
constexpr char kCreate[] = "CREATE VIRTUAL TABLE temp.nacre_transaction USING nacre_transaction";

}  // namespace

Status Session::TransactionOf(const DatabaseOptions& options, Transaction** transaction) {
  std::shared_ptr<Database> database;
  NACRE_RETURN_IF_ERROR(Database::Open(options, &database));
  for (const auto& known : transactions_) {
    if (&known->database() == database.get()) {
      *transaction = known.get();
      return Status::OK();
    }
  }
  transactions_.push_back(std::make_unique<Transaction>(std::move(database)));
  *transaction = transactions_.back().get();
  return Status::OK();
}

Table* Session::FindTable(const std::string& name) {
  // SQLite connects a table when a statement names it.
  char* const sql = sqlite3_mprintf("SELECT 1 FROM \"%w\"", name.c_str());
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(connection_, sql, -1, &statement, nullptr);
  sqlite3_finalize(statement);
  sqlite3_free(sql);
  if (code != SQLITE_OK) return nullptr;
  for (Table* table : tables_) {
    if (SameName(table->schema().name, name)) return table;
  }
  return nullptr;
}

void Session::RemoveTable(Table* table) {
  std::erase(tables_, table);
  if (!tables_.empty()) return;
  sqlite3_finalize(join_);
  join_ = nullptr;
}

int Session::PrepareJoin() {
  return sqlite3_prepare_v3(connection_, kJoin, -1, SQLITE_PREPARE_PERSISTENT, &join_, nullptr);
}

int Session::Join() {
  if (joined_) return SQLITE_OK;
  int code = SQLITE_OK;
  if (join_ == nullptr && PrepareJoin() != SQLITE_OK) {  // The first time: there is no such table.
    code = sqlite3_exec(connection_, kCreate, nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) code = PrepareJoin();
  }
  if (code != SQLITE_OK) return code;
  sqlite3_step(join_);
  code = sqlite3_reset(join_);
  if (code != SQLITE_OK) {  // The table may have gone with a transaction that was rolled back.
    sqlite3_finalize(join_);
    join_ = nullptr;
  }
  return code;
}

bool Session::HasOwnPatterns() {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(connection_, kOwnPatterns, -1, &statement, nullptr);
  const bool none = statement != nullptr && sqlite3_step(statement) == SQLITE_DONE;
  sqlite3_finalize(statement);
  return !none;
}

Status Session::Prepare() {
  for (const auto& transaction : transactions_) NACRE_RETURN_IF_ERROR(transaction->Prepare());
  return Status::OK();
}

void Session::Commit() {
  joined_ = false;
  for (const auto& transaction : transactions_) transaction->Commit();
}

void Session::Rollback() {
  joined_ = false;
  for (const auto& transaction : transactions_) transaction->Rollback();
}

void Session::Savepoint(int number) {
  for (const auto& transaction : transactions_) transaction->Savepoint(number);
}

void Session::Release(int number) {
  for (const auto& transaction : transactions_) transaction->Release(number);
}

void Session::RollbackTo(int number) {
  for (const auto& transaction : transactions_) transaction->RollbackTo(number);
}

int ErrorCode(const Status& status) {
  switch (status.code()) {
    case Status::Code::kOk:
      return SQLITE_OK;
    case Status::Code::kBusy:
      return SQLITE_BUSY_SNAPSHOT;
    case Status::Code::kCorruption:
      return SQLITE_CORRUPT_VTAB;
    case Status::Code::kNoSpace:
      return SQLITE_FULL;
    case Status::Code::kUnavailable:
    case Status::Code::kTimedOut:
    case Status::Code::kIOError:
      return SQLITE_IOERR;
    default:
      return SQLITE_ERROR;
  }
}

int SetError(const Status& status, char** message) {
  sqlite3_free(*message);
  *message = nullptr;
  // SQLite has words of its own for a lost race.
  if (!status.ok() && !status.IsBusy()) *message = sqlite3_mprintf("%s", status.ToString().c_str());
  return ErrorCode(status);
}

}  // namespace nacre::sqlite
