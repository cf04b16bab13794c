#include <memory>

#include "sqlite/session.h"

namespace nacre::sqlite {
namespace {

/// A table without rows that a connection writes to so that SQLite tells of the transaction's end.
struct TransactionTable : sqlite3_vtab {
  Session* session;

  static Session* SessionOf(sqlite3_vtab* table) {
    return static_cast<TransactionTable*>(table)->session;
  }
  static int Connect(sqlite3* connection, void* session, int, const char* const*,
                     sqlite3_vtab** table, char**) {
    auto created = std::make_unique<TransactionTable>();
    created->session = static_cast<Session*>(session);
    const int code = sqlite3_declare_vtab(connection, "CREATE TABLE x(never_read)");
    if (code == SQLITE_OK) *table = created.release();
    return code;
  }
  static int Disconnect(sqlite3_vtab* table) {
    std::unique_ptr<TransactionTable>(static_cast<TransactionTable*>(table)).reset();
    return SQLITE_OK;
  }
  static int BestIndex(sqlite3_vtab*, sqlite3_index_info*) { return SQLITE_OK; }
  static int Open(sqlite3_vtab*, sqlite3_vtab_cursor** cursor) {
    *cursor = std::make_unique<sqlite3_vtab_cursor>().release();
    return SQLITE_OK;
  }
  static int Close(sqlite3_vtab_cursor* cursor) {
    std::unique_ptr<sqlite3_vtab_cursor>(cursor).reset();
    return SQLITE_OK;
  }
  static int Filter(sqlite3_vtab_cursor*, int, const char*, int, sqlite3_value**) {
    return SQLITE_OK;
  }
  static int Next(sqlite3_vtab_cursor*) { return SQLITE_OK; }
  static int Eof(sqlite3_vtab_cursor*) { return 1; }
  static int Column(sqlite3_vtab_cursor*, sqlite3_context*, int) { return SQLITE_OK; }
  static int Rowid(sqlite3_vtab_cursor*, sqlite3_int64*) { return SQLITE_OK; }
  static int Update(sqlite3_vtab*, int, sqlite3_value**, sqlite3_int64*) { return SQLITE_OK; }
  static int Begin(sqlite3_vtab* table) {
    SessionOf(table)->Begin();
    return SQLITE_OK;
  }
  static int Sync(sqlite3_vtab* table) {
    return SetError(SessionOf(table)->Prepare(), &table->zErrMsg);
  }
  static int Commit(sqlite3_vtab* table) {
    SessionOf(table)->Commit();
    return SQLITE_OK;
  }
  static int Rollback(sqlite3_vtab* table) {
    SessionOf(table)->Rollback();
    return SQLITE_OK;
  }
  static int Savepoint(sqlite3_vtab* table, int number) {
    SessionOf(table)->Savepoint(number);
    return SQLITE_OK;
  }
  static int Release(sqlite3_vtab* table, int number) {
    SessionOf(table)->Release(number);
    return SQLITE_OK;
  }
  static int RollbackTo(sqlite3_vtab* table, int number) {
    SessionOf(table)->RollbackTo(number);
    return SQLITE_OK;
  }

  static constexpr sqlite3_module kModule = {
      2,      Connect,  Connect, BestIndex, Disconnect, Disconnect, Open,       Close,
      Filter, Next,     Eof,     Column,    Rowid,      Update,     Begin,      Sync,
      Commit, Rollback, nullptr, nullptr,   Savepoint,  Release,    RollbackTo, nullptr};
};

}  // namespace

int RegisterTransactionModule(Session* session) {
  return sqlite3_create_module_v2(session->connection(), "nacre_transaction",
                                  &TransactionTable::kModule, session, nullptr);
}

}  // namespace nacre::sqlite
