#include "transactions/optimistic_transaction.h"

#include <utility>

#include "db/db_impl.h"
#include "db/read/key_sequences.h"
#include "transactions/below.h"
#include "util/exceptions.h"

namespace nacre {

OptimisticTransaction::OptimisticTransaction(DB* db, const DBImpl* engine, BucketLocks* buckets,
                                             const WriteOptions& write_options,
                                             const OptimisticTransactionOptions& options,
                                             TransactionID id)
    : TransactionBase(db, engine, write_options,
                      options.cmp != nullptr ? options.cmp : engine->comparator(),
                      /*max_batch_bytes=*/0),
      buckets_(buckets),
      id_(id) {
  if (options.set_snapshot) SetSnapshot();
}

Status OptimisticTransaction::TryLock(ColumnFamilyHandle* family, const Slice& key, bool read_only,
                                      bool exclusive, bool do_validate, bool assume_tracked) {
  SetSnapshotIfNeeded();
  if (assume_tracked && tracked().Find(IdOf(family), key) == nullptr) {
    return Status::InvalidArgument("assume_tracked is set, but the key is not tracked");
  }
  if (!do_validate && !assume_tracked) return Status::OK();
  TrackKey(IdOf(family), key, Anchor(), read_only, exclusive);
  return Status::OK();
}

SequenceNumber OptimisticTransaction::Anchor() {
  // Bounds the snapshots of a long transaction, which cost the database something: later keys are
  // checked against an earlier state than would be needed.
  constexpr size_t kAnchorsMax = 16;
  if (const auto& snapshot = shared_snapshot(); snapshot != nullptr) {
    if (anchors_.empty() || anchors_.back() != snapshot) anchors_.push_back(snapshot);
    return snapshot->GetSequenceNumber();
  }
  const bool fresh = !anchors_.empty() &&
                     (anchors_.size() >= kAnchorsMax ||
                      anchors_.back()->GetSequenceNumber() == db()->GetLatestSequenceNumber());
  if (!fresh) anchors_.push_back(NewSnapshot());
  return anchors_.back()->GetSequenceNumber();
}

Status OptimisticTransaction::CheckKeys() const {
  Status status;
  tracked().ForEach([&](uint32_t family, const std::string& key, const TrackedKey& tracked) {
    if (!status.ok()) return;
    SequenceNumber latest = 0;
    status = engine()->key_sequences().Latest(family, key, tracked.sequence, &latest);
    if (status.ok() && latest > tracked.sequence) {
      status = Status::Busy("commit: others have written what this transaction has tracked");
    }
  });
  return status;
}

Status OptimisticTransaction::Commit() {
  NACRE_RETURN_IF_ERROR(CatchAll([this] { return CheckAndWrite(); }));
  return Rollback();  // What is left of it.
}

Status OptimisticTransaction::CheckAndWrite() {
  std::vector<uint32_t> buckets;
  WriteBatch* batch = GetWriteBatch()->GetWriteBatch();
  NACRE_RETURN_IF_ERROR(buckets_->AddBuckets(*batch, &buckets));
  tracked().ForEach([&](uint32_t family, const std::string& key, const TrackedKey&) {
    buckets.push_back(buckets_->BucketOf(family, key));
  });
  const BucketLocks::Holder holder(buckets_, std::move(buckets));
  NACRE_RETURN_IF_ERROR(CheckKeys());
  return batch->Count() == 0 ? Status::OK() : db()->Write(GetWriteOptions(), batch);
}

Status OptimisticTransaction::Rollback() {
  Clear();
  anchors_.clear();
  return Status::OK();
}

}  // namespace nacre
