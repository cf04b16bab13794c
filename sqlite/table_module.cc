#include "sqlite/table_module.h"

#include <memory>
#include <string>
#include <vector>

#include "sqlite/query/cursor.h"
#include "sqlite/query/plan.h"
#include "sqlite/table.h"

namespace nacre::sqlite {
namespace {

Table* TableOf(sqlite3_vtab* table) { return static_cast<Table*>(table); }
Session* SessionOf(sqlite3_vtab* table) { return TableOf(table)->session(); }
Cursor* CursorOf(sqlite3_vtab_cursor* cursor) { return static_cast<Cursor*>(cursor); }

int ConnectTable(Session* session, int count, const char* const* arguments, bool create,
                 sqlite3_vtab** table, char** message) {
  // Module, schema and table come first.
  const std::vector<std::string> declared(arguments + 3, arguments + count);
  std::unique_ptr<Table> connected;
  const Status status = Table::Connect(session, arguments[2], declared, create, &connected);
  if (status.IsBusy()) {  // Here SQLite has no words for it.
    *message = sqlite3_mprintf("%s", status.ToString().c_str());
    return SQLITE_BUSY;
  }
  if (!status.ok()) return SetError(status, message);
  sqlite3_vtab_config(session->connection(), SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
  *table = connected.release();
  return SQLITE_OK;
}

int Create(sqlite3*, void* session, int count, const char* const* arguments, sqlite3_vtab** table,
           char** message) {
  return ConnectTable(static_cast<Session*>(session), count, arguments, true, table, message);
}

int Connect(sqlite3*, void* session, int count, const char* const* arguments, sqlite3_vtab** table,
            char** message) {
  return ConnectTable(static_cast<Session*>(session), count, arguments, false, table, message);
}

int Disconnect(sqlite3_vtab* table) {
  std::unique_ptr<Table>(TableOf(table)).reset();
  return SQLITE_OK;
}

int Destroy(sqlite3_vtab* table) {
  const int code = TableOf(table)->Drop();
  if (code == SQLITE_OK) Disconnect(table);
  return code;
}

int BestIndex(sqlite3_vtab* table, sqlite3_index_info* info) {
  // As in SQLite, preparing a statement fails because there is no such table any more.
  Transaction* const transaction = TableOf(table)->transaction();
  transaction->Pin();
  const int code = TableOf(table)->Check();
  transaction->Unpin();
  if (code != SQLITE_OK) return code;
  return ChoosePlan(SessionOf(table), TableOf(table)->schema(), *TableOf(table)->statistics(),
                    info);
}

int Open(sqlite3_vtab* table, sqlite3_vtab_cursor** cursor) {
  *cursor = TableOf(table)->TakeCursor().release();
  return SQLITE_OK;
}

int Close(sqlite3_vtab_cursor* cursor) {
  Table* const table = TableOf(cursor->pVtab);
  table->GiveBack(std::unique_ptr<Cursor>(CursorOf(cursor)));
  return SQLITE_OK;
}

int Filter(sqlite3_vtab_cursor* cursor, int index, const char* plan, int,
           sqlite3_value** arguments) {
  return CursorOf(cursor)->Filter(index, plan, arguments);
}

int Next(sqlite3_vtab_cursor* cursor) { return CursorOf(cursor)->Next(); }
int Eof(sqlite3_vtab_cursor* cursor) { return CursorOf(cursor)->AtEnd() ? 1 : 0; }

int Column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int column) {
  return CursorOf(cursor)->Column(context, column);
}

int Rowid(sqlite3_vtab_cursor* cursor, sqlite3_int64* rowid) {
  return CursorOf(cursor)->Rowid(rowid);
}

int Update(sqlite3_vtab* table, int count, sqlite3_value** arguments, sqlite3_int64* rowid) {
  return TableOf(table)->Update(count, arguments, rowid);
}

int Begin(sqlite3_vtab* table) {
  SessionOf(table)->Begin();
  TableOf(table)->transaction()->Begin();
  return SQLITE_OK;
}

int Sync(sqlite3_vtab* table) { return TableOf(table)->Fail(SessionOf(table)->Prepare()); }

int Commit(sqlite3_vtab* table) {
  SessionOf(table)->Commit();
  return SQLITE_OK;
}

int Rollback(sqlite3_vtab* table) {
  SessionOf(table)->Rollback();
  return SQLITE_OK;
}

int Rename(sqlite3_vtab* table, const char* name) { return TableOf(table)->Rename(name); }

int Savepoint(sqlite3_vtab* table, int number) {
  SessionOf(table)->Savepoint(number);
  return SQLITE_OK;
}

int Release(sqlite3_vtab* table, int number) {
  SessionOf(table)->Release(number);
  return SQLITE_OK;
}

int RollbackTo(sqlite3_vtab* table, int number) {
  SessionOf(table)->RollbackTo(number);
  return SQLITE_OK;
}

const sqlite3_module kTableModule = {2,       Create, Connect,   BestIndex, Disconnect, Destroy,
                                     Open,    Close,  Filter,    Next,      Eof,        Column,
                                     Rowid,   Update, Begin,     Sync,      Commit,     Rollback,
                                     nullptr, Rename, Savepoint, Release,   RollbackTo, nullptr};

void Destruct(void* session) { std::unique_ptr<Session>(static_cast<Session*>(session)).reset(); }

}  // namespace

int RegisterTableModule(std::unique_ptr<Session> session) {
  sqlite3* const connection = session->connection();
  return sqlite3_create_module_v2(connection, "nacre", &kTableModule, session.release(), Destruct);
}

}  // namespace nacre::sqlite
