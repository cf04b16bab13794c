#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/status.h"

namespace nacre {

/// Options of a keyspace and of each of its shards.
struct ShardedOptions : Options {
  ShardedOptions() = default;
  explicit ShardedOptions(const Options& options) : Options(options) {}

  /// Where a new keyspace is cut: one shard begins before all keys, and one at each of these, which
  /// ascend in the order of `comparator` (`InvalidArgument`). One that exists keeps its own.
  std::vector<std::string> boundaries;
  /// What keeps the map of a keyspace that several processes own together. Empty: this process owns
  /// all shards, and the map lies in the pool. Anything else is `NotSupported` so far.
  std::string coordinator;
};

/// A shard of an open keyspace.
struct ShardInfo {
  uint32_t id = 0;       ///< Never used twice by a keyspace.
  std::string database;  ///< Name of the database that holds it, "<keyspace>@<id>".
  std::string begin;     ///< Its first key may be this one; empty for the first shard.
  std::string end;       ///< Its keys are before this one, if it is not the last shard.
  bool last = false;
};

/// A database that consists of shards: ranges of keys, each of which is a Nacre database with
/// MemTables, a log and tables of its own. All of them together are used as one `DB`.
///
/// A write of one shard costs what it costs a `DB`. A batch over n shards is atomic, by a two-phase
/// commit, which takes the time of 2n - 1 writes: all shards but the first prepare it, the first
/// one commits and thereby decides, then the others commit. Whatever reads or writes the same keys
/// meanwhile waits. A crash leaves all of it or nothing. Single operations, batches, MultiGets,
/// snapshots and iterators of the keyspace are strictly serializable, as those of a `DB` are.
///
/// What differs from a `DB`:
///   - All families have the comparator of the default one (`InvalidArgument`).
///   - The sequence number of a snapshot is the sum over the shards.
///   - If a write over several shards fails once it may have been decided, later reads and writes
///     of its keys answer that failure until the keyspace is opened again, which settles it.
///   - Without a log (`WriteOptions::disable_wal`, an embedded pool) a crash may leave a part of a
///     batch over several shards: they flush at different times.
///   - Properties that are numbers are sums over the shards; those that are texts have a part for
///     each. Numbers of the pool and of its nodes are answered once. "nacre.shards" is how many
///     there are.
///   - `NewAsyncDB` and `TryCatchUpWithPrimary` are `NotSupported`; so are transactions over it.
///   - `Options::db_write_buffer_size` is that of all shards together.
///
/// Thread safety: as DB.
class ShardedDB : public DB {
 public:
  /// Opens the keyspace `name`, or makes it (`Options::create_if_missing`). Fails as `DB::Open`
  /// does.
  static Status Open(const ShardedOptions& options, const std::string& name,
                     std::unique_ptr<ShardedDB>* db);
  /// The same with these column families, as `DB::Open` has it. `InvalidArgument` if a new keyspace
  /// would take a database that there is already for one of its shards.
  static Status Open(const ShardedOptions& options, const std::string& name,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<ShardedDB>* db);
  /// As `DB::ListColumnFamilies`.
  static Status ListColumnFamilies(const DBOptions& options, const std::string& name,
                                   std::vector<std::string>* families);

  /// The shards, in the order of their keys.
  virtual std::vector<ShardInfo> GetShards() const = 0;
};

/// Deletes the keyspace `name` in the pool of `options`. OK if there is none. `Busy` while a
/// process has it open; what was deleted by then is gone.
Status DestroyShardedDB(const std::string& name, const Options& options);

}  // namespace nacre
