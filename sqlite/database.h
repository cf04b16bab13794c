#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nacre/db.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "sqlite/family_set.h"
#include "sqlite/overlay.h"
#include "sqlite/query/statistics.h"
#include "sqlite/read_state.h"

namespace nacre::sqlite {

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
  /// It is a keyspace (ShardedDB). With a coordinator other processes may use it, too.
  bool sharded = false;
  std::string coordinator{};     ///< ShardedOptions::coordinator.
  std::string member_address{};  ///< ShardedOptions::member_address.
};

/// A Nacre database that the connections of this process share. Holds the catalogue of tables and
/// decides which transactions commit.
///
/// Rows of a table and each of its indexes are spaces (sqlite/row/key_encoding.h). Space 0 is the
/// catalogue:
///
///     't' name      a table (sqlite/catalogue.h)
///     's' u32       big-endian: varint, about how many rows the table of this space has
///     'd' u32       big-endian: how many of its keys are equal (sqlite/query/key_distribution.h)
///     'a' name      the arguments that the table was declared with
///     'c'           LogPosition, if the database has a command log
///     'n'           in a keyspace: varint, the greatest number of a space that was given
///     'v'           in a keyspace: varint, the version of the schema
///
/// Each commit that changes tables makes a new version of the schema. States know theirs.
///
/// Thread safety: all methods may be called from many threads at once.
class Database {
 public:
  /// The one of this process, opened and created if need be. Closed when the last pointer is gone.
  /// `InvalidArgument` if this process has it open with another redundancy; else as `DB::Open`.
  static Status Open(const DatabaseOptions& options, std::shared_ptr<Database>* database);
  virtual ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// ReadState::id of no state.
  static constexpr uint64_t kNoState = ~0ULL;

  const DatabaseOptions& options() const { return options_; }
  DB* db() const { return db_.get(); }
  const WriteOptions& write_options() const { return write_options_; }
  /// Whether `Commit` wants commands.
  virtual bool logs_commands() const { return false; }

  /// The latest state.
  virtual std::shared_ptr<ReadState> Read() = 0;

  /// Writes all of `overlay`, or nothing: `Busy` if another transaction has committed one of the
  /// keys after `state`, or has dropped one of the tables. `deltas`: of each table that is written,
  /// the rows that it has gained. `dropped`: the spaces of tables that are removed. `commands`:
  /// what the command log is to have of it. `*after`: the state that this has made of `state`,
  /// unless others may have written meanwhile.
  using RowDeltas = std::vector<std::pair<std::shared_ptr<TableStatistics>, int64_t>>;
  virtual Status Commit(const ReadState& state, const Overlay& overlay, const RowDeltas& deltas,
                        const std::vector<uint32_t>& dropped, const Slice& commands,
                        std::optional<uint64_t>* after) = 0;

  /// New spaces, each with the family that it lies in; they are kept until DropUnusedFamilies is
  /// told that their transaction has ended. All are made, or none.
  struct NewSpace {
    uint32_t space;
    std::shared_ptr<const Family> family;
  };
  virtual Status CreateSpaces(uint32_t count, std::vector<NewSpace>* spaces) = 0;
  /// Drops the families that no table of the catalogue has, and none that may get a table. `ended`:
  /// of CreateSpaces, by a transaction that has ended. Memory is free once no state has them.
  virtual Status DropUnusedFamilies(const std::vector<uint32_t>& ended) = 0;
  virtual std::shared_ptr<TableStatistics> StatisticsOf(uint32_t space) = 0;

 protected:
  Database(const DatabaseOptions& options, std::unique_ptr<DB> db);

  /// A snapshot that goes with its last reference; null if none can be taken.
  std::shared_ptr<const Snapshot> TakeSnapshot() const;

 private:
  const DatabaseOptions options_;
  const std::unique_ptr<DB> db_;
  const WriteOptions write_options_;
};

/// What all tables may have in MemTables.
uint64_t WriteBufferOf(const DatabaseOptions& options);

/// The space of the catalogue.
inline constexpr uint32_t kCatalogueSpace = 0;
/// Keys of the catalogue, as above, with their space.
std::string CatalogueKey(char kind);
std::string CatalogueKey(char kind, uint32_t space);
std::string CatalogueKey(char kind, const Slice& name);

}  // namespace nacre::sqlite
