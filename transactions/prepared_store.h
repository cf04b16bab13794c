#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "nacre/column_family.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"
#include "util/mutex.h"

namespace nacre {

class DBImpl;

/// The column family in which prepared transactions are kept.
class PreparedFamily {
 public:
  virtual ~PreparedFamily() = default;

  /// Null if it is not there.
  virtual std::unique_ptr<ColumnFamilyHandle> Find() = 0;
  virtual Status Make(std::unique_ptr<ColumnFamilyHandle>* family) = 0;
};

/// Keeps a database's prepared transactions: in a column family of its own, in which each is an
/// entry, by its name. So they are in the log, in MemTables and in tables as all else is, need no
/// segment of the log to be kept, and the next opening finds them. The entry goes with the very
/// batch that commits the transaction.
///
/// A value is a byte with the format's version, 1, and the batch.
///
/// Thread safety: all methods may be called from many threads at once, but Open and Close.
class PreparedStore {
 public:
  /// In kPreparedFamilyName of `engine`, which is what is below `db`. Both outlive it.
  PreparedStore(DB* db, DBImpl* engine);
  PreparedStore(DB* db, std::unique_ptr<PreparedFamily> family)
      : db_(db), kept_in_(std::move(family)) {}

  /// Calls `found` for each that is there; ends with what that answers, unless it is OK.
  Status Open(const std::function<Status(const std::string& name, WriteBatch* batch)>& found)
      EXCLUDES(mutex_);
  /// Must precede closing the database.
  void Close() EXCLUDES(mutex_);

  /// Makes the family now, if it is not there.
  Status MakeFamily() EXCLUDES(mutex_) {
    ColumnFamilyHandle* family = nullptr;
    return FindFamily(&family);
  }
  /// Durable when it returns, wherever the database has a log. The first one makes the family.
  Status Add(WriteOptions options, const std::string& name, const WriteBatch& batch)
      EXCLUDES(mutex_);
  /// Has `batch` make the entry.
  Status AddEntry(const std::string& name, const WriteBatch& entry, WriteBatch* batch)
      EXCLUDES(mutex_);
  /// Has `batch` remove the entry.
  Status AddRemoval(const std::string& name, WriteBatch* batch) EXCLUDES(mutex_);

 private:
  /// Makes it, if it is not there.
  Status FindFamily(ColumnFamilyHandle** family) EXCLUDES(mutex_);

  DB* const db_;
  const std::unique_ptr<PreparedFamily> kept_in_;
  Mutex mutex_;
  std::unique_ptr<ColumnFamilyHandle> family_ GUARDED_BY(mutex_);
};

}  // namespace nacre
