#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sqlite/query/key_ranges.h"
#include "sqlite/query/merged_iterator.h"
#include "sqlite/query/plan.h"
#include "sqlite/row/stored_row.h"
#include "sqlite/table.h"

namespace nacre::sqlite {

/// A statement's reading of a table: one row by its key, rows or index entries in their order, or
/// rows that an index or a list of keys names, which are read many at a time.
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
  int Fail(const Status& status) { return table_->Fail(status); }
  /// What `Filter` reads.
  int ReadPlan(const char* plan, sqlite3_value** arguments);
  void ReadLimit(const char* scan, sqlite3_value** arguments);
  int ReadOneRow();
  int ReadFromIterator();
  /// Goes on in the next range behind the end of one. False behind the last one, or if it failed.
  bool SkipEmptyRanges();
  /// Stands at the next entry without reading its row.
  int WaitAtEntry();
  /// The next rows by their keys, or by entries of the index.
  int FetchRows();
  /// Up to `fetch_next_` keys of rows.
  Status GatherKeys();
  Status GatherFromIterator();
  Status GatherUniqueKeys();
  /// Into `fetched_statuses_`.
  Status GetMany(size_t count, const std::vector<std::string>& keys,
                 std::vector<PinnableSlice>* values);
  /// The ones at `places`, which the own writes have not got.
  void GetManyStored(const std::vector<size_t>& places, const std::vector<std::string>& keys,
                     std::vector<PinnableSlice>* values);
  /// False if none is left of those that were fetched.
  bool ShowFetched();
  void ShowRow(const Slice& primary_key, const Slice& row);
  /// Reads the row that was waited with (`waits_`). An SQLite code.
  int EnsureRow();
  Status CurrentPrimaryKey(Slice* primary_key) const;
  Status ReadEntry(int column, Value* value);
  /// A column that an entry of an index has, or the one that stands for the whole primary key.
  int EntryColumn(sqlite3_context* context, int column);

  Table* const table_;
  bool pinned_ = false;
  bool at_end_ = true;
  int index_ = 0;
  bool covering_ = false;
  bool backwards_ = false;
  ReadView view_;
  MergedIterator iterator_;
  KeyRanges ranges_;
  bool fetches_ = false;  ///< Rows come from `FetchRows`.
  int64_t unread_ = 0;    ///< So many rows are likely to be passed over unread (OFFSET).
  /// The iterator stands at the current entry, whose row is read when it is asked for.
  bool waits_ = false;
  PinnableSlice single_;  ///< The result of `ReadOneRow`.

  // The current row, or an entry of an index that has all that is wanted.
  StoredRow row_;
  Slice entry_key_;  ///< Excludes the space.
  Slice entry_value_;
  std::string scratch_;

  // Rows that an index or a list named, and their keys, with the space.
  std::vector<std::string> fetched_keys_;
  std::vector<PinnableSlice> fetched_rows_;
  std::vector<PinnableSlice> fetched_entries_;  ///< Entries of a unique index.
  std::vector<Status> fetched_statuses_;
  size_t fetched_count_ = 0;
  size_t fetched_at_ = 0;
  size_t fetch_next_ = 1;  ///< How many are read together: at first the limit, then more and more.
};

}  // namespace nacre::sqlite
