#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/utilities/optimistic_transaction_db.h"
#include "transactions/transaction_base.h"
#include "transactions/write_checks.h"

namespace nacre {

/// See OptimisticTransactionDB. It remembers a sequence number for each key (WriteChecks).
class OptimisticTransaction final : public TransactionBase {
 public:
  /// `db` outlives it. `comparator` is the order of the keys.
  OptimisticTransaction(DB* db, std::unique_ptr<WriteChecks> checks,
                        const WriteOptions& write_options,
                        const OptimisticTransactionOptions& options, const Comparator* comparator,
                        TransactionID id);

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
  std::unique_ptr<ColumnFamilyHandle> FindHandle(uint32_t family) const override {
    return checks_->FindHandle(family);
  }

  const std::unique_ptr<WriteChecks> checks_;
  const TransactionID id_;
};

}  // namespace nacre
