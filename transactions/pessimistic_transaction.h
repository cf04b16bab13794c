#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/utilities/transaction_db.h"
#include "transactions/lock_manager.h"
#include "transactions/transaction_base.h"

namespace nacre {

class PessimisticTransactionDB;

/// See TransactionDB.
class PessimisticTransaction final : public TransactionBase, private LockWaiter {
 public:
  /// `db` outlives it.
  PessimisticTransaction(PessimisticTransactionDB* db, const WriteOptions& write_options,
                         const TransactionOptions& options, TransactionID id);
  ~PessimisticTransaction() override;

  Status Prepare() override;
  Status Commit() override;
  Status Rollback() override;
  Status RollbackToSavePoint() override;
  void SetLockTimeout(int64_t timeout_ms) override { timeout_ms_ = timeout_ms; }
  Status SetName(const TransactionName& name) override;
  TransactionName GetName() const override { return name_; }
  TransactionID GetID() const override { return id_; }
  TransactionState GetState() const override { return state_.load(std::memory_order_acquire); }
  bool IsDeadlockDetect() const override { return deadlock_detect_; }
  std::vector<TransactionID> GetWaitingTxns(uint32_t* family, std::string* key) const override;

  /// Takes the locks of an expired transaction: it cannot commit any more.
  bool Rob();
  /// Makes it one that was prepared before, with the locks of what it writes. Updates of families
  /// that were dropped since are left out.
  Status Recover(const TransactionName& name, const WriteBatch& batch);

 private:
  void BeginWait(const std::vector<TransactionID>& owners, uint32_t family,
                 const Slice& key) override;
  void EndWait() override;
  Status TryLock(ColumnFamilyHandle* family, const Slice& key, bool read_only, bool exclusive,
                 bool do_validate, bool assume_tracked) override;
  void Unlock(uint32_t family, const Slice& key) override;
  std::unique_ptr<ColumnFamilyHandle> FindHandle(uint32_t family) const override;
  /// All that it has locked.
  void ReleaseKeys();
  bool Expired() const;
  /// Moves from STARTED to `next`; says why if it cannot.
  Status Leave(TransactionState next);
  /// Why `state` is none in which it works.
  static Status NotAtWork(TransactionState state);
  LockOwner Owner() const;
  Status WriteUpdates();
  /// Removes the record from the store of prepared transactions.
  Status RemoveRecord();
  void End(TransactionState state);

  PessimisticTransactionDB* const txn_db_;
  const TransactionID id_;
  const bool deadlock_detect_;
  const int64_t deadlock_detect_depth_;
  const bool skip_concurrency_control_;
  const bool skip_prepare_;
  const uint64_t expires_nanos_;  ///< 0: never.
  int64_t timeout_ms_;
  TransactionName name_;
  bool recorded_ = false;  ///< There may be an entry of it in the PreparedStore.
  std::atomic<TransactionState> state_{STARTED};

  mutable Mutex wait_mutex_;
  std::vector<TransactionID> waiting_for_ GUARDED_BY(wait_mutex_);
  uint32_t waiting_family_ GUARDED_BY(wait_mutex_) = 0;
  std::string waiting_key_ GUARDED_BY(wait_mutex_);
};

}  // namespace nacre
