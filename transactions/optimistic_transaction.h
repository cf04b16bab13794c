#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/utilities/optimistic_transaction_db.h"
#include "transactions/bucket_locks.h"
#include "transactions/transaction_base.h"

namespace nacre {

/// See OptimisticTransactionDB. It remembers a sequence number for each key; Commit looks whether
/// the key has an entry that is newer.
///
/// What a compaction has dropped leaves no entry. A key that was there at a snapshot which is still
/// held leaves one whenever it changes: the tombstone that hides what the snapshot sees. So each
/// sequence number that is remembered is that of a snapshot which is held until the end. A key that
/// was absent then, came and went meanwhile is not noticed: what was read of it is true again.
class OptimisticTransaction final : public TransactionBase {
 public:
  /// All outlive it.
  OptimisticTransaction(DB* db, const DBImpl* engine, BucketLocks* buckets,
                        const WriteOptions& write_options,
                        const OptimisticTransactionOptions& options, TransactionID id);

  Status Prepare() override { return Status::NotSupported("Prepare of an optimistic transaction"); }
  Status Commit() override;
  Status Rollback() override;
  void SetLockTimeout(int64_t /*timeout_ms*/) override {}
  Status SetName(const TransactionName& /*name*/) override {
    return Status::NotSupported("SetName of an optimistic transaction");
  }
  TransactionName GetName() const override { return {}; }
  TransactionID GetID() const override { return id_; }
  TransactionState GetState() const override { return STARTED; }
  std::vector<TransactionID> GetWaitingTxns(uint32_t* /*family*/,
                                            std::string* /*key*/) const override {
    return {};
  }

 private:
  Status TryLock(ColumnFamilyHandle* family, const Slice& key, bool read_only, bool exclusive,
                 bool do_validate, bool assume_tracked) override;
  void Unlock(uint32_t /*family*/, const Slice& /*key*/) override {}
  /// The sequence number of a snapshot that stays until the end.
  SequenceNumber Anchor();
  /// All of Commit, under the buckets of all keys.
  Status CheckAndWrite();
  /// Answers `Busy` if a key was written. The caller holds the buckets of all keys.
  Status CheckKeys() const;

  BucketLocks* const buckets_;
  const TransactionID id_;
  std::vector<std::shared_ptr<const Snapshot>> anchors_;
};

}  // namespace nacre
