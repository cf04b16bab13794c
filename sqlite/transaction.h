#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "sqlite/command_log/command_list.h"
#include "sqlite/database.h"
#include "sqlite/overlay.h"
#include "sqlite/row_cache.h"

namespace nacre::sqlite {

/// What a statement reads: a state of the database and the own writes over it. Both live as long as
/// their last reference, also when the transaction has ended and another has begun.
struct ReadView {
  std::shared_ptr<ReadState> state{};
  std::shared_ptr<Overlay> overlay{};

  /// Null if it was dropped before the state.
  const Family* FamilyOf(uint32_t space) const;
  static Status FamilyIsGone() { return Status::Aborted("the table was dropped"); }
  /// As DB::Get; `key` begins with its space. `Aborted`: that was dropped before the state.
  Status Get(const Slice& key, PinnableSlice* value) const;
  /// The same, but looks at the own writes only. False if they have not got `key`.
  bool GetOwn(const Slice& key, PinnableSlice* value, Status* status) const;
  /// The same, but ignores the own writes.
  Status GetStored(const Slice& key, PinnableSlice* value) const;
  /// Likewise. `keys` are all of `space`, with which they begin.
  void MultiGetStored(uint32_t space, const std::vector<Slice>& keys, PinnableSlice* values,
                      Status* statuses) const;
};

/// The transactions of one connection in one database, one after the other: the state it reads and
/// what it has written since.
///
/// Isolation is that of snapshots: reads see the state at the transaction's begin and its own
/// writes; it commits as one batch, unless another has committed a write of one of its keys.
///
/// Thread safety: none; SQLite uses a connection from one thread at a time.
class Transaction {
 public:
  explicit Transaction(std::shared_ptr<Database> database);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  Database& database() { return *database_; }

  /// A cursor reads from now until `Unpin`: what else begins to read until then sees the same
  /// state, in autocommit mode too.
  void Pin();
  void Unpin();

  /// The latest state, which stays until `Commit` or `Rollback`. Idempotent.
  void Begin();
  /// Writes what was written. `Busy`: another transaction was faster with one of the keys, or with
  /// dropping one of the tables.
  Status Prepare();
  void Commit();
  void Rollback();
  /// As sqlite3_module has them; the same one may be told of more than once. Below 0 is the save
  /// point that began the transaction.
  void Savepoint(int number);
  void Release(int number);
  void RollbackTo(int number);

  /// Need a pin or `Begin` before them.
  const ReadView& view() const { return view_; }
  /// As `view.Get`, of a view that was this transaction's: a row that was read lately costs little.
  Status Get(const ReadView& view, const Slice& key, PinnableSlice* value);
  /// `*exists`: whether there is such a key.
  Status Exists(const Slice& key, bool* exists);

  /// New families for a table with `count` key spaces; gone with the transaction unless it commits
  /// a table that has them. `Begin` is part of it.
  Status CreateSpaces(uint32_t count, std::vector<uint32_t>* spaces);
  /// They are a table's that this transaction removes.
  void DropSpaces(const std::vector<uint32_t>& spaces);

  /// Need `Begin` before them.
  void Put(const Slice& key, const Slice& value) { view_.overlay->Put(key, value); }
  void Delete(const Slice& key) { view_.overlay->Delete(key); }
  /// Takes what is done, for the command log; null if there is none. It is undone with the writes.
  CommandList* commands() { return database_->logs_commands() ? &commands_ : nullptr; }
  void CountRows(const std::shared_ptr<TableStatistics>& statistics, int64_t delta);

  /// The greatest row number of a table as this transaction sees it; null if it is not known.
  const int64_t* LastRow(uint32_t space) const;
  void SetLastRow(uint32_t space, int64_t row) { last_rows_[space] = row; }
  void ForgetLastRow(uint32_t space) { last_rows_.erase(space); }

 private:
  struct Mark {
    size_t undo;
    size_t command_bytes;
    size_t deltas;
    size_t delta_steps;
  };
  /// A change of one of the deltas.
  struct DeltaStep {
    size_t place;
    int64_t change;
  };

  void TakeState();
  /// Tells `rows_` of what was committed.
  void TellRows();
  void DropWrites();
  void DropDeltas();
  void Finish();

  const std::shared_ptr<Database> database_;
  ReadView view_;
  int pins_ = 0;
  bool begun_ = false;
  bool written_ = false;  ///< `Prepare` has written the overlay.
  Database::RowDeltas deltas_;
  std::vector<DeltaStep> delta_steps_;  ///< Since the first save point.
  CommandList commands_;
  std::vector<Mark> marks_;  ///< Indexed by number of the save point.
  std::vector<uint32_t> created_spaces_;
  std::vector<uint32_t> dropped_spaces_;
  /// Valid in the state of this id, with the overlay.
  std::map<uint32_t, int64_t> last_rows_;
  uint64_t known_state_ = 0;
  RowCache rows_;
  PinnableSlice scratch_;
};

}  // namespace nacre::sqlite
