#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nacre/async.h"
#include "nacre/status.h"
#include "nacre/task.h"
#include "nacre/write_batch.h"
#include "server/store/encoding.h"
#include "server/store/lock_table.h"
#include "server/store/store.h"

namespace nacre::server {

/// A key of one of the databases.
struct KeyRef {
  int database = 0;
  std::string_view key;
};

/// A key that was changed, and whether it is there since.
struct TouchedKey {
  int database = 0;
  std::string key;
  bool there = false;
};

/// A key that was met, and is deleted, since it has expired.
struct ExpiredKey {
  int database = 0;
  std::string key;
};

/// Something that happened to a key, which clients may be told of.
struct KeyEvent {
  int database = 0;
  std::string key;
  const char* name = nullptr;  ///< Lives for ever.
  uint32_t kind = 0;
};

struct Row {
  std::string key;
  std::string value;
};

/// Rows from `from` up to `to`, which is not one of them: the `limit` first, or last if `reverse`,
/// behind `skip` others.
struct RowRange {
  // It is no aggregate, as g++ 12 destroys temporary ones in a co_await expression twice.
  RowRange(std::string first, std::string behind, size_t rows_max = SIZE_MAX,
           bool backwards = false, size_t skipped = 0)
      : from(std::move(first)),
        to(std::move(behind)),
        limit(rows_max),
        reverse(backwards),
        skip(skipped) {}

  std::string from;
  std::string to;
  size_t limit;
  bool reverse;
  size_t skip;
  /// Not 0: only rows of that kind, in several sections; neither reverse nor behind others.
  char kind = 0;
};

/// What one command reads and changes, or all commands of one EXEC: it sees its own changes, and
/// all of them take effect by one write to the database, or none. The locks of its keys have to be
/// held, with kChange or kReplace if it changes them.
///
/// The first failure of the database stays: reads find nothing from then on, Submit writes nothing,
/// and `status()` tells. So commands need not look at the outcome of each read.
///
/// Thread safety: one coroutine uses it, on the loop.
class UnitOfWork {
 public:
  /// `access` must outlive it. Unless it `changes`, keys that have expired are only not seen.
  UnitOfWork(const StoreAccess* access, bool changes);
  ~UnitOfWork() { Unlock(); }
  UnitOfWork(const UnitOfWork&) = delete;
  UnitOfWork& operator=(const UnitOfWork&) = delete;

  const StoreAccess& access() const { return access_; }
  const RowNames& names() const { return access_.store->names(); }
  const Status& status() const { return status_; }
  /// The time by which keys have expired; it stands still once the locks are held.
  uint64_t now_ms() const { return now_ms_; }

  // ---- Locks --------------------------------------------------------------------------------

  Task<void> Lock(std::vector<SlotLock> locks);
  void Unlock();
  /// Whether what it holds allows as much as `lock` does.
  bool Holds(const SlotLock& lock) const;
  /// Forgets all changes since the last write, and what was read. The locks stay.
  void Discard();

  // ---- Keys ---------------------------------------------------------------------------------

  /// Nothing if the key is not there, or has expired.
  Task<std::optional<Meta>> Find(int database, std::string_view key);
  /// A new collection, of no elements so far, for a key that is not there.
  Meta NewCollection(int database, Type type);
  /// Sets what there is to know of the key. A collection without elements is gone by that.
  void Save(int database, std::string_view key, const Meta& meta);
  /// The same for a string.
  void SaveString(int database, std::string_view key, std::string_view value,
                  uint64_t expires_at_ms);
  /// Those who watch the key are told, though what Save stores is as it was.
  void Touch(int database, std::string_view key) {
    touched_.push_back({database, std::string(key), true});
  }
  /// Deletes it, with all its elements.
  void Remove(int database, std::string_view key, const Meta& meta);

  // ---- Rows ---------------------------------------------------------------------------------

  Task<std::optional<std::string>> Get(int database, std::string row);
  /// Reads rows at once that Get and Find will be asked for, best in this order. Their locks are
  /// held until the end of the unit.
  Task<void> ReadAhead(int database, std::vector<std::string> rows);
  Task<std::vector<std::optional<std::string>>> MultiGet(int database,
                                                         std::vector<std::string> rows);
  /// Is done by a worker.
  Task<std::vector<Row>> Scan(int database, RowRange range);
  /// The first meta rows of all sections, from the row `from` on, or from the first if it is empty.
  Task<std::vector<Row>> ScanKeys(int database, std::string from, size_t limit);
  void Put(int database, std::string row, std::string value);
  void Delete(int database, std::string row);
  /// Deletes all rows of the database. All locks are held.
  void Clear(int database);

  // ---- The end ------------------------------------------------------------------------------

  bool changed() const { return !rows_.empty() || !cleared_.empty(); }
  /// The keys that Save and Remove were called for since the last write.
  std::vector<TouchedKey> TakeTouched() { return std::exchange(touched_, {}); }
  const std::vector<TouchedKey>& touched() const { return touched_; }
  std::vector<ExpiredKey> TakeExpired() { return std::exchange(expired_, {}); }
  /// Events of the changes since the last write.
  std::vector<KeyEvent>* events() { return &events_; }
  std::vector<KeyEvent> TakeEvents() { return std::exchange(events_, {}); }
  /// The databases that Clear was called for since the last write.
  const std::set<int>& cleared() const { return cleared_; }
  /// Begins the write of all changes, of which there are some; they are visible, and as durable as
  /// the database has it, when the write has ended, and the rest of the unit begins anew.
  AsyncStatus Submit();
  /// Takes what the write has answered, and lets the sweeper know what it has left to be removed.
  void Written(Status status);
  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

 private:
  using RowName = std::pair<int, std::string>;
  /// For the sweeper: where there is something to be removed, and when.
  struct SweepTime {
    int database = 0;
    uint32_t section = 0;
    uint64_t unix_ms = 0;
  };
  /// Rows that were read ahead of the calls for them.
  struct RowsAhead {
    int database = 0;
    std::vector<std::string> rows;
    std::vector<PinnableSlice> values;
    std::vector<Status> statuses;
    size_t next = 0;  ///< The one that is expected to be asked for.
  };

  ColumnFamilyHandle* Family(int database) const { return access_.store->Find(database)->family; }
  std::map<RowName, std::optional<std::string>>::const_iterator FirstChange(
      int database, const std::string& from) const {
    return rows_.lower_bound({database, from});
  }
  /// True if no read of the database is needed: `*value` is what the row is.
  bool FindHere(const RowName& name, std::optional<std::string>* value);
  /// What the database has answered for a row.
  std::optional<std::string> Answered(const Status& status, const PinnableSlice& value);
  void PutExpiry(int database, std::string_view key, uint64_t expires_at_ms);
  void PutGarbage(int database, std::string_view key, uint64_t incarnation);
  bool HasChangesIn(int database, const RowRange& range) const;
  void ApplyChanges(int database, const RowRange& range, std::vector<Row>* rows) const;

  const StoreAccess& access_;
  const bool changes_;
  uint64_t now_ms_;
  Status status_;
  std::vector<SlotLock> locks_;
  std::map<RowName, std::optional<std::string>> rows_;  ///< Nothing: the row is deleted.
  std::set<int> cleared_;  ///< What they had is deleted before `rows_` are written.
  std::vector<TouchedKey> touched_;
  std::vector<SweepTime> sweeps_;
  std::vector<ExpiredKey> expired_;
  std::vector<KeyEvent> events_;
  size_t gets_ = 0;
  RowsAhead ahead_;
  WriteBatch batch_;
};

}  // namespace nacre::server
