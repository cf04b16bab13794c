#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "sqlite/command_log/log_position.h"
#include "sqlite/commit_order.h"
#include "sqlite/family_set.h"
#include "sqlite/memory_bound.h"
#include "sqlite/overlay.h"
#include "sqlite/query/statistics.h"
#include "sqlite/read_state.h"
#include "util/mutex.h"
#include "util/thread_annotations.h"

namespace nacre::sqlite {

class CommandCheckpoints;
class CommandLog;

/// What a virtual table says of where it is.
struct DatabaseOptions {
  std::string pool;  ///< Options::pool_uri.
  std::string name = "sqlite";
  std::string redundancy = "none";
  uint64_t write_buffer_size = 0;  ///< Bytes for all tables together; 0: Nacre's default.
  /// Folder of the command log (sqlite/command_log/command_log.h), instead of the log on the nodes;
  /// empty: none.
  std::string command_log{};
  uint64_t command_log_size = 64 << 20;  ///< Bytes of it at which a checkpoint is made.
  /// Whether commits are in the log on the nodes. Without either log, a process that dies loses
  /// what was not flushed.
  bool remote_log = true;
};

/// A Nacre database that the connections of this process share: its owner has it open once. Holds
/// the catalogue of tables and decides which transactions commit.
///
/// Rows of a table and each of its indexes are spaces (sqlite/row/key_encoding.h), and each space
/// is a column family, "sqlite.NUMBER", whose keys are without the space. Space 0 is the default
/// family. It has the catalogue:
///
///     't' name      a table (sqlite/catalogue.h)
///     's' u32       big-endian: varint, about how many rows the table of this space has
///     'd' u32       big-endian: how many of its keys are equal (sqlite/query/key_distribution.h)
///     'a' name      the arguments that the table was declared with
///     'c'           LogPosition, if the database has a command log
///
/// A family of that name which no table has is left from a transaction that made a table and did
/// not commit, or from a table that was removed, and is dropped.
///
/// Each commit that changes tables makes a new version of the schema. States know theirs.
///
/// Thread safety: all methods may be called from many threads at once.
class Database {
 public:
  /// The one of this process, opened and created if need be. Closed when the last pointer is gone.
  /// `InvalidArgument` if this process has it open with another redundancy; else as `DB::Open`.
  static Status Open(const DatabaseOptions& options, std::shared_ptr<Database>* database);

  /// `handles`: all that the database was opened with.
  Database(const DatabaseOptions& options, std::unique_ptr<DB> db,
           const std::vector<ColumnFamilyHandle*>& handles);
  /// Flushes and closes.
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const DatabaseOptions& options() const { return options_; }
  DB* db() { return db_.get(); }
  const WriteOptions& write_options() const { return write_options_; }
  /// Whether `Commit` wants commands.
  bool logs_commands() const { return log_ != nullptr; }

  /// The latest state.
  std::shared_ptr<ReadState> Read();

  /// Writes all of `overlay`, or nothing: `Busy` if another transaction has committed one of the
  /// keys after `state`, or has dropped one of the tables. `deltas`: of each table that is written,
  /// the rows that it has gained. `dropped`: the spaces of tables that are removed. `commands`:
  /// what the command log is to have of it. `*updates`: how many the batch had.
  using RowDeltas = std::vector<std::pair<std::shared_ptr<TableStatistics>, int64_t>>;
  Status Commit(const ReadState& state, const Overlay& overlay, const RowDeltas& deltas,
                const std::vector<uint32_t>& dropped, const Slice& commands, uint64_t* updates);

  /// New families, which are kept until DropUnusedFamilies is told that their transaction has
  /// ended. As `DB::CreateColumnFamilies`: all are made by one change, or none.
  Status CreateFamilies(uint32_t count, std::vector<std::shared_ptr<const Family>>* families);
  /// Drops the families that no table of the catalogue has, and none that may get a table. `ended`:
  /// of CreateFamilies, by a transaction that has ended. Memory is free once no state has them.
  Status DropUnusedFamilies(const std::vector<uint32_t>& ended);
  std::shared_ptr<TableStatistics> StatisticsOf(uint32_t space);

 private:
  Status FindUsedSpaces(std::set<uint32_t>* spaces);
  Status DropFamilies(const std::vector<std::shared_ptr<const Family>>& dropped);
  void WriteStatistics();
  /// Brings the database up to `log`, which takes its commits from now on.
  Status UseLog(std::unique_ptr<CommandLog> log);
  /// Makes the batch of a transaction, with its number in the command log, if there is one.
  Status WriteLogged(WriteBatch* batch, const Slice& commands);

  const DatabaseOptions options_;
  const std::unique_ptr<DB> db_;
  const WriteOptions write_options_;
  std::unique_ptr<CommandLog> log_;
  std::unique_ptr<CommandCheckpoints> checkpoints_;
  MemoryBound memory_;

  Mutex mutex_;
  CommitOrder order_ GUARDED_BY(mutex_);
  /// The latest state, if it is current.
  std::shared_ptr<ReadState> current_ GUARDED_BY(mutex_);
  std::shared_ptr<const FamilySet> families_ GUARDED_BY(mutex_);
  std::set<uint32_t> pending_ GUARDED_BY(mutex_);  ///< Made by transactions that have not ended.
  uint32_t next_space_ GUARDED_BY(mutex_) = 1;
  uint64_t schema_version_ GUARDED_BY(mutex_) = 1;
  std::map<uint32_t, std::shared_ptr<TableStatistics>> statistics_ GUARDED_BY(mutex_);
  /// These are not ours, but open while the database is.
  std::vector<std::unique_ptr<const Family>> others_;
  /// One thread drops families at a time. Taken before the other one.
  Mutex drop_mutex_;
};

/// Keys of the catalogue, as above.
std::string CatalogueKey(char kind);
std::string CatalogueKey(char kind, uint32_t space);
std::string CatalogueKey(char kind, const Slice& name);

}  // namespace nacre::sqlite
