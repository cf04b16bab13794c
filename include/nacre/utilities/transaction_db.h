#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "nacre/utilities/stackable_db.h"
#include "nacre/utilities/transaction.h"

namespace nacre {

struct ShardedOptions;

enum class TxnDBWritePolicy : uint8_t {
  WRITE_COMMITTED = 0,  ///< Updates reach the database at Commit. The only one here.
};

struct TransactionDBOptions {
  /// Keys that may be locked at once; what would lock more answers `Busy`. -1: no limit.
  int64_t max_num_locks = -1;
  /// How many of the last deadlocks `GetDeadlockInfoBuffer` keeps.
  uint32_t max_num_deadlocks = 5;
  /// Mutexes among which locked keys are divided.
  size_t num_stripes = 16;
  /// Milliseconds that a transaction waits for a lock; 0: not at all; negative: as long as it
  /// takes.
  int64_t transaction_lock_timeout = 1000;
  /// The same for writes outside transactions. At 0 or below such a write may wait for ever for a
  /// transaction of its own thread.
  int64_t default_lock_timeout = 1000;
  TxnDBWritePolicy write_policy = TxnDBWritePolicy::WRITE_COMMITTED;
};

struct TransactionOptions {
  /// As if SetSnapshot was called at once.
  bool set_snapshot = false;
  /// Look for deadlocks before waiting; `Busy` then, with a message that says so.
  bool deadlock_detect = false;
  /// Milliseconds; negative: TransactionDBOptions::transaction_lock_timeout.
  int64_t lock_timeout = -1;
  /// Milliseconds after which others may take its locks, and Commit answers `Aborted`; negative:
  /// never.
  int64_t expiration = -1;
  /// Transactions that are looked at before a long row of waits is taken for a deadlock.
  int64_t deadlock_detect_depth = 50;
  /// Bytes of its batch; what would make it longer answers `Aborted`. 0: no limit.
  size_t max_write_batch_size = 0;
  /// Takes no locks and makes no checks: the caller knows that no other thread writes these keys.
  bool skip_concurrency_control = false;
  /// Whether a transaction with a name may be committed without Prepare; otherwise
  /// `InvalidArgument`.
  bool skip_prepare = true;
};

/// Options of `TransactionDB::Write`, as in RocksDB.
struct TransactionDBWriteOptimizations {
  bool skip_concurrency_control = false;
  /// Accepted for RocksDB's sake: with WRITE_COMMITTED it means nothing.
  bool skip_duplicate_key_check = false;
};

/// A lock and the transactions that hold it.
struct KeyLockInfo {
  std::string key;
  std::vector<TransactionID> ids;
  bool exclusive = true;
};

/// One of the transactions that waited for one another.
struct DeadlockInfo {
  TransactionID m_txn_id = 0;
  uint32_t m_cf_id = 0;
  bool m_exclusive = true;
  std::string m_waiting_key;
};

struct DeadlockPath {
  std::vector<DeadlockInfo> path;  ///< Empty if the row was too long to be followed.
  bool limit_exceeded = false;
  int64_t deadlock_time = 0;  ///< Milliseconds of Clock::System.

  bool empty() const { return path.empty() && !limit_exceeded; }
};

/// A database with transactions that lock what they write or get for update: RocksDB's, with
/// WriteCommitted.
///
/// Invariant: a write of a key through this object holds its exclusive lock from before the write
/// gets its sequence number until it is visible; the plain writes of this object take the lock for
/// the time of the write. Writes that go to `GetBaseDB()` take none.
///
/// Ranges have no lock: `DeleteRange` is `NotSupported`, also in batches, unless
/// `TransactionDBWriteOptimizations::skip_concurrency_control` says that there is no other writer.
///
/// Thread safety: as DB.
class TransactionDB : public StackableDB {
 public:
  /// As DB::Open. Transactions that were prepared are there again, with their locks, before this
  /// returns.
  static Status Open(const Options& options, const TransactionDBOptions& db_options,
                     const std::string& name, std::unique_ptr<TransactionDB>* db);
  static Status Open(const DBOptions& options, const TransactionDBOptions& db_options,
                     const std::string& name, const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<TransactionDB>* db);
  /// The same over a keyspace: GetBaseDB is a `ShardedDB`. A key whose shard was split, merged or
  /// moved since the snapshot of its transaction counts as written (`Busy`).
  /// `Transaction::Prepare` is `NotSupported` with a coordinator, or if the comparator is neither
  /// BytewiseComparator nor ReverseBytewiseComparator.
  ///
  /// With a coordinator the owner of a key's shard has its lock, for the transactions of all
  /// processes that open the keyspace so. A lock is lost when its shard moves, is split or merged,
  /// or when the owner dies, and when the process that has it dies. Each commit asks the owners, at
  /// one moment, whether the transaction has all of its locks still; one that has lost one, and
  /// upgrading a lock that was lost, are `Busy`. Deadlocks are found among transactions that wait
  /// for keys of one shard; others end by the timeout. `max_num_locks` is `NotSupported`.
  static Status Open(const ShardedOptions& options, const TransactionDBOptions& db_options,
                     const std::string& name, std::unique_ptr<TransactionDB>* db);
  static Status Open(const ShardedOptions& options, const TransactionDBOptions& db_options,
                     const std::string& name, const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<TransactionDB>* db);

  /// Must be destroyed before this.
  virtual std::unique_ptr<Transaction> BeginTransaction(const WriteOptions& write_options,
                                                        const TransactionOptions& options = {}) = 0;

  using StackableDB::Write;
  virtual Status Write(const WriteOptions& options,
                       const TransactionDBWriteOptimizations& optimizations,
                       WriteBatch* updates) = 0;

  /// Null if no live transaction has that name. The code that began it owns it; if it was found at
  /// the opening, this object does, until it is destroyed.
  virtual Transaction* GetTransactionByName(const TransactionName& name) = 0;
  /// All that are prepared and neither committed nor rolled back.
  virtual void GetAllPreparedTransactions(std::vector<Transaction*>* transactions) = 0;

  /// Lists the locks by the id of their family.
  virtual std::unordered_multimap<uint32_t, KeyLockInfo> GetLockStatusData() = 0;
  /// Newest first.
  virtual std::vector<DeadlockPath> GetDeadlockInfoBuffer() = 0;
  virtual void SetDeadlockInfoBufferSize(uint32_t size) = 0;

 protected:
  explicit TransactionDB(std::unique_ptr<DB> db) : StackableDB(std::move(db)) {}
};

}  // namespace nacre
