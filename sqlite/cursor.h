#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sqlite/merged_iterator.h"
#include "sqlite/plan.h"
#include "sqlite/stored_row.h"
#include "sqlite/table.h"

namespace nacre::sqlite {

/// A statement's reading of a table: one row by its key, rows or index entries in their order, or
/// rows that an index names, which are read many at a time.
/// Errors are SQLite's codes; the message is in the table's zErrMsg.
/// Thread safety: none; SQLite uses a connection from one thread at a time.
class Cursor : public sqlite3_vtab_cursor {
 public:
  explicit Cursor(Table* table) : sqlite3_vtab_cursor{table}, table_(table) {}
  ~Cursor() { Close(); }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  int Filter(int index, const char* plan, sqlite3_value** arguments);
  int Next();
  bool AtEnd() const { return at_end_; }
  int Column(sqlite3_context* context, int column);
  int Rowid(sqlite3_int64* rowid);
  /// Gives up what it reads; `Filter` may follow.
  void Close();

 private:
  /// What `Filter` reads.
  struct Bounds {
    std::string begin{};
    std::string end{};
    size_t parts = 0;  ///< First parts of the index that are equal in all of it.
    bool empty = false;
    bool one_row = false;  ///< `begin` is the only key.
  };

  int Fail(const Status& status) { return table_->Fail(status); }
  void MakeBounds(const char* plan, sqlite3_value** arguments);
  /// Null if a value cannot be looked for in the index, which is then read without the parts from
  /// there on, and SQLite looks at each row.
  const char* AddEqualParts(const KeySpace& keys, const char* plan, sqlite3_value*** argument);
  void AddBound(char op, sqlite3_value* argument, const KeyPart& part, bool constant,
                const std::string& prefix);
  int ReadOneRow();
  int ReadFromIterator();
  /// The next entries of the index and their rows.
  int FetchRows();
  Status ReadRows();
  /// False if none is left of those that were fetched.
  bool ShowFetched();
  void ShowRow(const Slice& primary_key, const Slice& row);
  Status CurrentPrimaryKey(Slice* primary_key) const;
  Status ReadEntry(int column, Value* value);

  Table* const table_;
  bool pinned_ = false;
  bool at_end_ = true;
  int index_ = 0;
  bool covering_ = false;
  bool backwards_ = false;
  ReadView view_;
  MergedIterator iterator_;
  Bounds bounds_;
  PinnableSlice single_;  ///< Of `ReadOneRow`.

  // Where the cursor stands: a row, or an entry of an index that has all that is wanted.
  StoredRow row_;
  Slice entry_key_;
  Slice entry_value_;
  std::string scratch_;

  // Rows that an index named, and their keys.
  std::vector<std::string> fetched_keys_;
  std::vector<PinnableSlice> fetched_rows_;
  std::vector<Status> fetched_statuses_;
  size_t fetched_count_ = 0;
  size_t fetched_at_ = 0;
  size_t fetch_next_ = 1;  ///< How many are read together: twice as many each time.
};

}  // namespace nacre::sqlite
