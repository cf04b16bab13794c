#include "transactions/optimistic_transaction.h"

#include <utility>

#include "transactions/below.h"
#include "util/exceptions.h"

namespace nacre {

OptimisticTransaction::OptimisticTransaction(DB* db, std::unique_ptr<WriteChecks> checks,
                                             const WriteOptions& write_options,
                                             const OptimisticTransactionOptions& options,
                                             const Comparator* comparator, TransactionID id)
    : TransactionBase(db, write_options, options.cmp != nullptr ? options.cmp : comparator,
                      /*max_batch_bytes=*/0),
      checks_(std::move(checks)),
      id_(id) {
  if (options.snapshot != nullptr) {
    UseSnapshot(options.snapshot);
  } else if (options.set_snapshot) {
    SetSnapshot();
  }
}

Status OptimisticTransaction::TryLock(ColumnFamilyHandle* family, const Slice& key, bool read_only,
                                      bool exclusive, bool do_validate, bool assume_tracked) {
  SetSnapshotIfNeeded();
  if (assume_tracked && tracked().Find(IdOf(family), key) == nullptr) {
    return Status::InvalidArgument("assume_tracked is set, but the key is not tracked");
  }
  if (!do_validate && !assume_tracked) return Status::OK();
  SequenceNumber sequence = 0;
  NACRE_RETURN_IF_ERROR(checks_->Watch(family, key, shared_snapshot(), &sequence));
  TrackKey(IdOf(family), key, sequence, read_only, exclusive);
  return Status::OK();
}

Status OptimisticTransaction::Commit() {
  NACRE_RETURN_IF_ERROR(CatchAll([this] {
    return checks_->Write(GetWriteOptions(), tracked(), GetWriteBatch()->GetWriteBatch());
  }));
  return Rollback();  // What is left of it.
}

Status OptimisticTransaction::Rollback() {
  Clear();
  checks_->Clear();
  return Status::OK();
}

}  // namespace nacre
