#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "sqlite/sqlite_api.h"
#include "sqlite/transaction.h"

namespace nacre::sqlite {

class Table;

/// A connection of SQLite, and what it does in Nacre databases. Owned by SQLite, as the client data
/// of the module.
///
/// SQLite tells a virtual table of a transaction only if it is written to. Statements that only
/// read in an explicit transaction are to see one state, too, so the first of them writes to a
/// table of this extension without content, `temp.nacre_transaction`: the end is told to it. Thread
/// safety: none; SQLite uses a connection from one thread at a time.
class Session {
 public:
  explicit Session(sqlite3* connection) : connection_(connection) {}
  ~Session() { sqlite3_finalize(join_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  sqlite3* connection() const { return connection_; }
  /// The tables of this connection.
  const std::vector<Table*>& tables() const { return tables_; }
  /// This connection's transaction in the database, which is opened if need be. Stays valid as long
  /// as the session.
  Status TransactionOf(const DatabaseOptions& options, Transaction** transaction);

  /// Has SQLite tell of the transaction's end: before a read in an explicit one, and before a write
  /// that SQLite would not tell of. An SQLite error code.
  int Join();

  /// Whether the connection has functions LIKE or GLOB of its own, which may match anything.
  bool HasOwnPatterns();

  // What SQLite tells, once or more often for the same event.
  void Begin() { joined_ = true; }
  Status Prepare();
  void Commit();
  void Rollback();
  void Savepoint(int number);
  void Release(int number);
  void RollbackTo(int number);

  /// Each table of the connection tells of its life: without any, no statement is kept, which would
  /// keep the connection from being closed.
  void AddTable(Table* table) { tables_.push_back(table); }
  void RemoveTable(Table* table);
  /// The table `name` of the connection, by SQLite's rules for names; null if there is none.
  Table* FindTable(const std::string& name);

 private:
  int PrepareJoin();

  sqlite3* const connection_;
  std::vector<std::unique_ptr<Transaction>> transactions_;
  std::vector<Table*> tables_;
  sqlite3_stmt* join_ = nullptr;  ///< Writes to `temp.nacre_transaction`.
  bool joined_ = false;
};

/// Registers the module of `temp.nacre_transaction`. An SQLite error code.
int RegisterTransactionModule(Session* session);

/// SQLite's code for a failure, without a message.
int ErrorCode(const Status& status);
/// The same, and leaves the message in `*message` (of sqlite3_malloc), in place of what was there.
int SetError(const Status& status, char** message);

}  // namespace nacre::sqlite
