#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "nacre/utilities/stackable_db.h"
#include "nacre/utilities/transaction.h"

namespace nacre {

struct ShardedOptions;

struct OptimisticTransactionOptions {
  /// As if SetSnapshot was called at once.
  bool set_snapshot = false;
  /// As if SetSnapshot had taken this one, of the same database, which is kept; null: none.
  std::shared_ptr<const Snapshot> snapshot{};
  /// Orders keys of families that have no comparator of their own; null means that of the database.
  /// It is not owned.
  const Comparator* cmp = nullptr;
};

struct OptimisticTransactionDBOptions {
  /// Locks among which keys are divided. They are held by commits while these are checked and
  /// written; more of them let more commits go on at once.
  uint32_t occ_lock_buckets = 1 << 16;
};

/// A database with transactions that take no locks as they work: `Commit` answers `Busy` if others
/// have written since what they have read for update or written.
///
/// Invariant: a write of a key through this object holds the key's bucket from before the write
/// gets its sequence number until it is visible. A commit checks its keys under their buckets and
/// writes under the same, so no other write of these keys comes in between. Commits in flight do
/// not see writes that go to `GetBaseDB()` meanwhile.
///
/// Ranges have no bucket: `DeleteRange` is `NotSupported`, alone and in batches, as in RocksDB.
///
/// Over a keyspace (ShardedDB) the owner of each shard compares the keys when it prepares its part
/// of the commit, and nothing else writes them until that has ended, whichever process it is in:
/// ranges may be deleted, too. A commit answers `Busy` as well if a shard of its keys was moved,
/// split or merged since they were tracked. In a shard of another member, each key that is tracked
/// first costs a request.
///
/// Thread safety: as DB.
class OptimisticTransactionDB : public StackableDB {
 public:
  /// As DB::Open.
  static Status Open(const Options& options, const std::string& name,
                     std::unique_ptr<OptimisticTransactionDB>* db);
  static Status Open(const Options& options, const OptimisticTransactionDBOptions& db_options,
                     const std::string& name, std::unique_ptr<OptimisticTransactionDB>* db);
  static Status Open(const DBOptions& options, const OptimisticTransactionDBOptions& db_options,
                     const std::string& name, const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles,
                     std::unique_ptr<OptimisticTransactionDB>* db);

  /// Over a keyspace, as ShardedDB::Open. It has no buckets.
  static Status Open(const ShardedOptions& options, const std::string& name,
                     std::unique_ptr<OptimisticTransactionDB>* db);
  static Status Open(const ShardedOptions& options, const std::string& name,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles,
                     std::unique_ptr<OptimisticTransactionDB>* db);

  /// Must be destroyed before this.
  virtual std::unique_ptr<Transaction> BeginTransaction(
      const WriteOptions& write_options, const OptimisticTransactionOptions& options = {}) = 0;

 protected:
  explicit OptimisticTransactionDB(std::unique_ptr<DB> db) : StackableDB(std::move(db)) {}
};

}  // namespace nacre
