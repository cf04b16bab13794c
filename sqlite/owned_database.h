#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sqlite/command_log/log_position.h"
#include "sqlite/commit_order.h"
#include "sqlite/database.h"
#include "sqlite/memory_bound.h"
#include "sqlite/query/known_statistics.h"
#include "util/mutex.h"
#include "util/thread_annotations.h"

namespace nacre::sqlite {

class CommandCheckpoints;
class CommandLog;

/// A database that this process alone owns. Each space is a column family, "sqlite.NUMBER", whose
/// keys are without the space; space 0 is the default family.
///
/// A family of that name which no table has is left from a transaction that made a table and did
/// not commit, or from a table that was removed, and is dropped.
///
/// Thread safety: as Database.
class OwnedDatabase final : public Database {
 public:
  static Status Open(const DatabaseOptions& options, std::unique_ptr<Database>* database);
  /// Flushes and closes.
  ~OwnedDatabase() override;

  bool logs_commands() const override { return log_ != nullptr; }
  std::shared_ptr<ReadState> Read() override;
  Status Commit(const ReadState& state, const Overlay& overlay, const RowDeltas& deltas,
                const std::vector<uint32_t>& dropped, const Slice& commands,
                std::optional<uint64_t>* after) override;
  Status CreateSpaces(uint32_t count, std::vector<NewSpace>* spaces) override;
  Status DropUnusedFamilies(const std::vector<uint32_t>& ended) override;
  std::shared_ptr<TableStatistics> StatisticsOf(uint32_t space) override {
    return statistics_.Of(space);
  }

 private:
  /// `handles`: all that the database was opened with.
  OwnedDatabase(const DatabaseOptions& options, std::unique_ptr<DB> db,
                const std::vector<ColumnFamilyHandle*>& handles);

  Status FindUsedSpaces(std::set<uint32_t>* spaces);
  Status DropFamilies(const std::vector<std::shared_ptr<const Family>>& dropped);
  void WriteStatistics();
  /// Brings the database up to `log`, which takes its commits from now on.
  Status UseLog(std::unique_ptr<CommandLog> log);
  /// Makes the batch of a transaction, with its number in the command log, if there is one.
  Status WriteLogged(WriteBatch* batch, const Slice& commands);

  std::unique_ptr<CommandLog> log_;
  std::unique_ptr<CommandCheckpoints> checkpoints_;
  MemoryBound memory_;
  KnownStatistics statistics_;

  Mutex mutex_;
  CommitOrder order_ GUARDED_BY(mutex_);
  /// The latest state, if it is current.
  std::shared_ptr<ReadState> current_ GUARDED_BY(mutex_);
  std::shared_ptr<const FamilySet> families_ GUARDED_BY(mutex_);
  std::set<uint32_t> pending_ GUARDED_BY(mutex_);  ///< Made by transactions that have not ended.
  uint32_t next_space_ GUARDED_BY(mutex_) = 1;
  uint64_t schema_version_ GUARDED_BY(mutex_) = 1;
  /// These are not ours, but open while the database is.
  std::vector<std::unique_ptr<const Family>> others_;
  /// One thread drops families at a time. Taken before the other one.
  Mutex drop_mutex_;
};

}  // namespace nacre::sqlite
