#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "sqlite/commit_order.h"
#include "sqlite/overlay.h"
#include "sqlite/read_state.h"
#include "sqlite/statistics.h"
#include "util/mutex.h"
#include "util/thread_annotations.h"

namespace nacre::sqlite {

/// What a virtual table says of where it is.
struct DatabaseOptions {
  std::string pool;  ///< Options::pool_uri.
  std::string name = "sqlite";
  std::string redundancy = "none";
  uint64_t write_buffer_size = 0;  ///< 0: Nacre's default.
};

/// A Nacre database that the connections of this process share: its owner has it open once. Holds
/// the catalogue of tables and decides which transactions commit.
///
/// The catalogue is the space 0 (sqlite/key_encoding.h). Its keys go on with
///
///     't' name      a table (sqlite/catalogue.h)
///     'n'           u32: the first space that was not given out
///     'g' u32       big-endian: a space of a dropped table, to be emptied
///     's' u32       big-endian: varint, about how many rows the table of this space has
///     'd' u32       big-endian: how many of its keys are equal (sqlite/key_distribution.h)
///
/// Thread safety: all methods may be called from many threads at once.
class Database {
 public:
  /// The one of this process, opened and created if need be. Closed when the last pointer is gone.
  /// `InvalidArgument` if this process has it open with another redundancy; else as `DB::Open`.
  static Status Open(const DatabaseOptions& options, std::shared_ptr<Database>* database);

  Database(const DatabaseOptions& options, std::unique_ptr<DB> db);
  /// Flushes and closes.
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const DatabaseOptions& options() const { return options_; }
  DB* db() { return db_.get(); }

  /// The latest state.
  std::shared_ptr<ReadState> Read();

  /// Writes all of `overlay`, or nothing: `Busy` if another transaction has committed one of the
  /// keys after `state`. `deltas` are the rows that tables have gained.
  using RowDeltas = std::vector<std::pair<std::shared_ptr<TableStatistics>, int64_t>>;
  Status Commit(const ReadState& state, const Overlay& overlay, const RowDeltas& deltas);

  /// Numbers of `count` new spaces in a row.
  Status AllocateSpaces(uint32_t count, uint32_t* first);
  std::shared_ptr<TableStatistics> StatisticsOf(uint32_t space);
  /// Empties the spaces of dropped tables, and has their memory freed.
  Status FreeDroppedSpaces();

 private:
  Status Recover();
  void WriteStatistics();

  const DatabaseOptions options_;
  const std::unique_ptr<DB> db_;

  Mutex mutex_;
  CommitOrder order_ GUARDED_BY(mutex_);
  /// Of the latest state, as long as it is one.
  std::shared_ptr<ReadState> current_ GUARDED_BY(mutex_);
  uint32_t next_space_ GUARDED_BY(mutex_) = 1;
  std::map<uint32_t, std::shared_ptr<TableStatistics>> statistics_ GUARDED_BY(mutex_);
  /// One thread empties spaces at a time.
  Mutex free_mutex_;
};

/// Keys of the catalogue, as above.
std::string CatalogueKey(char kind);
std::string CatalogueKey(char kind, uint32_t space);
std::string CatalogueKey(char kind, const Slice& name);

}  // namespace nacre::sqlite
