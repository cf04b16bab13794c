#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sqlite/row/row_check.h"
#include "sqlite/row/schema.h"
#include "sqlite/row/stored_row.h"
#include "sqlite/session.h"

namespace nacre::sqlite {

class Cursor;

/// A virtual table of one connection: what sqlite3_module calls xCreate to xRename of.
/// Errors are SQLite's codes; the message is in zErrMsg.
/// Thread safety: none; SQLite uses a connection from one thread at a time.
class Table : public sqlite3_vtab {
 public:
  Table(Session* session, Transaction* transaction, Schema schema,
        std::shared_ptr<TableStatistics> statistics, std::unique_ptr<RowCheck> check);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  /// Finds the table `name` in its database, or creates it if `create`; one that is there must be
  /// declared in the same way. Tells SQLite of the columns.
  static Status Connect(Session* session, const std::string& name,
                        const std::vector<std::string>& arguments, bool create,
                        std::unique_ptr<Table>* table);

  /// The same without SQLite. `check`: the conditions of rows, if they are to be checked.
  static Status Attach(Session* session, Transaction* transaction, const std::string& name,
                       Declaration declaration, bool create, std::unique_ptr<RowCheck> check,
                       std::unique_ptr<Table>* table);

  Session* session() { return session_; }
  Transaction* transaction() { return transaction_; }
  const Schema& schema() const { return schema_; }
  const std::shared_ptr<TableStatistics>& statistics() const { return statistics_; }

  int Fail(const Status& status) { return SetError(status, &zErrMsg); }

  /// Another connection may have dropped or renamed the table since the last call: then an SQLite
  /// code, "no such table". One that was dropped and made again in the same way is used as it is
  /// now. Needs the transaction's view.
  int Check() {
    const bool known = checked_version_ == transaction_->view().state->schema_version();
    return known ? SQLITE_OK : CheckAgain();
  }

  std::unique_ptr<Cursor> TakeCursor();
  void GiveBack(std::unique_ptr<Cursor> cursor);

  /// Counts equal keys for later plans, in the first `limit` of each index if that is not 0.
  Status Analyze(uint64_t limit);

  int Drop();
  int Rename(const char* name);
  /// xUpdate, with its arguments.
  int Update(int count, sqlite3_value** arguments, sqlite3_int64* rowid);

  // What a command log says that they came to, within a transaction.
  void DropFromDatabase();
  Status RenameInDatabase(const std::string& name);
  Status RedoPut(const Slice& primary_key, const Slice& bytes);
  Status RedoDelete(const Slice& primary_key);

 private:
  /// A row as xUpdate is given it.
  struct NewRow {
    std::vector<Value> values{};
    int64_t rowid = 0;
    std::string key{};  ///< Where it lies; includes the space.
    std::vector<IndexEntry> entries{};

    Slice primary_key() const { return WithoutSpace(key); }
  };
  /// A row that is there.
  struct OldRow {
    std::string key{};
    PinnableSlice bytes{};
    StoredRow row{};
    std::vector<Value> values{};
    int64_t rowid = 0;

    Slice primary_key() const { return WithoutSpace(key); }
  };

  int CheckAgain();
  /// Finds the table in the catalogue, as it was declared.
  Status FindAgain(bool* is_there);

  int InsertRow(sqlite3_value** arguments, sqlite3_int64* rowid);
  int UpdateRow(sqlite3_value** arguments);
  int DeleteRow(sqlite3_value* identity);

  /// The row that lies at `old->key`; `*found` is false if it is gone.
  Status FindRow(OldRow* old, bool* found);
  /// The key of the row that SQLite means.
  void SetKeyOfIdentity(sqlite3_value* identity, std::string* key) const;
  /// `old`: the row that it takes the place of, which keeps what the statement does not change; or
  /// null.
  void ReadNewRow(sqlite3_value** values, const OldRow* old, NewRow* row) const;
  /// An SQLite code: a missing value, a wrong type.
  int CheckNotNull(const NewRow& row);
  /// An SQLite code: a CHECK condition. Of a finished row.
  int CheckConditions(const NewRow& row);
  int TakeRowNumber(sqlite3_value* value, int64_t* rowid);
  int NextRowNumber(int64_t* rowid);
  void Finish(NewRow* row) const;

  /// Removes rows in the way of `row` if the statement says so; else an SQLite code that says what
  /// is in the way. `old`: the row that it takes the place of, or null.
  int ResolveConflicts(const NewRow& row, const OldRow* old);
  Status HasConflict(const Slice& key, const OldRow* old, bool is_index, std::string* other);
  int FailUnique(const KeySpace& keys);

  Status LastRowNumber(int64_t* rowid);
  bool IsAboveAllRows(int64_t rowid) const;
  void Remove(const OldRow& old);
  void Store(const NewRow& row, OldRow* old);
  void SetRowKey(const Slice& primary_key, std::string* key) const;

  Session* const session_;
  Transaction* const transaction_;
  Schema schema_;
  std::shared_ptr<TableStatistics> statistics_;
  const std::unique_ptr<RowCheck> check_;  ///< Null: no conditions.
  /// The version of the schema (Database) that has the table as it is here.
  uint64_t checked_version_ = 0;
  std::vector<std::unique_ptr<Cursor>> idle_cursors_;
  RowWriter writer_;
  // Their memory is used again.
  NewRow new_row_;
  OldRow old_row_;
  IndexEntry old_entry_;
};

}  // namespace nacre::sqlite
