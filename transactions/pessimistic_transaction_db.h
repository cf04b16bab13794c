#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nacre/utilities/transaction_db.h"
#include "transactions/key_locks.h"
#include "transactions/locked_database.h"
#include "util/mutex.h"

namespace nacre {

class PessimisticTransaction;

/// See TransactionDB.
class PessimisticTransactionDB final : public TransactionDB {
 public:
  using TransactionDB::Delete;
  using TransactionDB::Merge;
  using TransactionDB::Put;
  using TransactionDB::SingleDelete;

  /// `below` is of `db`.
  PessimisticTransactionDB(std::unique_ptr<DB> db, std::unique_ptr<LockedDatabase> below,
                           const TransactionDBOptions& options);
  ~PessimisticTransactionDB() override;

  /// Finds what was prepared before. Once, before anything else. If that fails, `handles` are
  /// destroyed.
  Status Recover(std::vector<ColumnFamilyHandle*>* handles);
  Status Close() override;
  std::unique_ptr<Transaction> BeginTransaction(const WriteOptions& write_options,
                                                const TransactionOptions& options) override;
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
             const Slice& value) override;
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key) override;
  Status SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                      const Slice& key) override;
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
               const Slice& operand) override;
  Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& begin,
                     const Slice& end) override;
  Status Write(const WriteOptions& options, WriteBatch* updates) override;
  Status Write(const WriteOptions& options, const TransactionDBWriteOptimizations& optimizations,
               WriteBatch* updates) override;
  Transaction* GetTransactionByName(const TransactionName& name) override;
  void GetAllPreparedTransactions(std::vector<Transaction*>* transactions) override;
  std::unordered_multimap<uint32_t, KeyLockInfo> GetLockStatusData() override {
    return locks_->Locks();
  }
  std::vector<DeadlockPath> GetDeadlockInfoBuffer() override { return locks_->Deadlocks(); }
  void SetDeadlockInfoBufferSize(uint32_t size) override { locks_->SetDeadlocksRemembered(size); }

  // ---- For transactions ----

  DB* base() const { return db_.get(); }
  LockedDatabase* below() const { return below_.get(); }
  const TransactionDBOptions& options() const { return options_; }
  KeyLocks* locks() const { return locks_.get(); }
  /// False: another one has the name.
  bool AddName(const TransactionName& name, PessimisticTransaction* transaction) EXCLUDES(mutex_);
  void RemoveName(const TransactionName& name) EXCLUDES(mutex_);
  /// Those whose locks others may take one day, as long as they live.
  void AddExpiring(TransactionID id, PessimisticTransaction* transaction) EXCLUDES(mutex_);
  void RemoveExpiring(TransactionID id) EXCLUDES(mutex_);

 private:
  /// An owner for one write outside transactions.
  LockOwner PlainOwner();
  /// Calls `write` with the lock of the key, or writes what `add` adds to a batch.
  template <typename WriteKey, typename AddUpdate>
  Status WriteLocked(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     WriteKey write, AddUpdate add);
  Status WriteAllLocked(const WriteOptions& options, WriteBatch* updates);
  bool Rob(TransactionID id) EXCLUDES(mutex_);

  const std::unique_ptr<LockedDatabase> below_;
  const TransactionDBOptions options_;
  std::atomic<TransactionID> next_id_{1};
  const std::unique_ptr<KeyLocks> locks_;

  Mutex mutex_;
  std::map<TransactionName, PessimisticTransaction*> names_ GUARDED_BY(mutex_);
  std::unordered_map<TransactionID, PessimisticTransaction*> expiring_ GUARDED_BY(mutex_);

  /// Those of Recover, until the end. They come last, as they use all of the above.
  std::vector<std::unique_ptr<PessimisticTransaction>> recovered_;
};

}  // namespace nacre
