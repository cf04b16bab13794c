#include "transactions/transaction_base.h"

#include <map>
#include <utility>

#include "transactions/below.h"
#include "util/clock.h"
#include "util/exceptions.h"

namespace nacre {

TransactionBase::TransactionBase(DB* db, const WriteOptions& options, const Comparator* comparator,
                                 size_t max_batch_bytes)
    : db_(db),
      write_options_(options),
      start_nanos_(Clock::System()->NowNanos()),
      batch_(comparator, 0, /*overwrite_key=*/true, max_batch_bytes) {}

void TransactionBase::Clear() {
  save_points_.clear();
  batch_.Clear();
  tracked_.Clear();
  counts_ = {};
  ClearSnapshot();
}

uint64_t TransactionBase::GetElapsedTime() const {
  return (Clock::System()->NowNanos() - start_nanos_) / 1'000'000;
}

// ---- Snapshots --------------------------------------------------------------------------------

std::shared_ptr<const Snapshot> TransactionBase::NewSnapshot() const {
  return {db_->GetSnapshot(), [db = db_](const Snapshot* held) { db->ReleaseSnapshot(held); }};
}

void TransactionBase::SetSnapshot() { UseSnapshot(NewSnapshot()); }

void TransactionBase::UseSnapshot(std::shared_ptr<const Snapshot> snapshot) {
  snapshot_ = std::move(snapshot);
  snapshot_needed_ = false;
  notifier_ = nullptr;
}

void TransactionBase::SetSnapshotOnNextOperation(std::shared_ptr<TransactionNotifier> notifier) {
  snapshot_needed_ = true;
  notifier_ = std::move(notifier);
}

void TransactionBase::SetSnapshotIfNeeded() {
  if (!snapshot_needed_) return;
  const std::shared_ptr<TransactionNotifier> notifier = notifier_;
  SetSnapshot();
  if (notifier != nullptr) notifier->SnapshotCreated(GetSnapshot());
}

void TransactionBase::ClearSnapshot() {
  snapshot_.reset();
  snapshot_needed_ = false;
  notifier_ = nullptr;
}

// ---- Save points ------------------------------------------------------------------------------

void TransactionBase::SetSavePoint() {
  save_points_.push_back({snapshot_, snapshot_needed_, notifier_, counts_, {}});
  try {
    batch_.SetSavePoint();
  } catch (...) {
    save_points_.pop_back();
    throw;
  }
}

Status TransactionBase::RollbackToSavePoint() {
  if (save_points_.empty()) return Status::NotFound("transaction: no save point");
  NACRE_RETURN_IF_ERROR(batch_.RollbackToSavePoint());
  SavePoint& point = save_points_.back();
  snapshot_ = std::move(point.snapshot);
  snapshot_needed_ = point.snapshot_needed;
  notifier_ = std::move(point.notifier);
  counts_ = point.counts;
  point.tracked.ForEach([this](uint32_t family, const std::string& key, const TrackedKey& since) {
    if (tracked_.Subtract(family, key, since)) Unlock(family, key);
  });
  save_points_.pop_back();
  return Status::OK();
}

Status TransactionBase::PopSavePoint() {
  if (save_points_.empty()) return Status::NotFound("transaction: no save point");
  return CatchAll([this] {
    if (save_points_.size() > 1) {
      save_points_[save_points_.size() - 2].tracked.Merge(save_points_.back().tracked);
    }
    save_points_.pop_back();
    return batch_.PopSavePoint();
  });
}

// ---- Keys -------------------------------------------------------------------------------------

void TransactionBase::TrackKey(uint32_t family, const Slice& key, SequenceNumber sequence,
                               bool read_only, bool exclusive) {
  TrackedKey* since = nullptr;
  if (!save_points_.empty()) since = save_points_.back().tracked.Reserve(family, key);
  tracked_.Track(family, key, sequence, read_only, exclusive);
  if (since != nullptr) since->Count(sequence, read_only, exclusive);
}

Status TransactionBase::LockKey(ColumnFamilyHandle* family, const Slice& key, bool read_only,
                                bool exclusive, bool do_validate, bool assume_tracked) {
  return CatchAll(
      [&] { return TryLock(family, key, read_only, exclusive, do_validate, assume_tracked); });
}

void TransactionBase::UndoGetForUpdate(ColumnFamilyHandle* family, const Slice& key) {
  const uint32_t id = IdOf(family);
  // What was tracked before a save point has to be there after rolling back to it.
  if (!save_points_.empty() &&
      save_points_.back().tracked.UntrackRead(id, key) == KeyTracker::Untracked::kNotTracked) {
    return;
  }
  if (tracked_.UntrackRead(id, key) == KeyTracker::Untracked::kRemoved) Unlock(id, key);
}

// ---- Reads ------------------------------------------------------------------------------------

Status TransactionBase::Get(const ReadOptions& options, ColumnFamilyHandle* family,
                            const Slice& key, PinnableSlice* value) {
  return batch_.GetFromBatchAndDB(db_, options, family, key, value);
}

void TransactionBase::MultiGet(const ReadOptions& options, ColumnFamilyHandle* family,
                               size_t num_keys, const Slice* keys, PinnableSlice* values,
                               Status* statuses, bool sorted_input) {
  batch_.MultiGetFromBatchAndDB(db_, options, family, num_keys, keys, values, statuses,
                                sorted_input);
}

Status TransactionBase::GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family,
                                     const Slice& key, PinnableSlice* value, bool exclusive,
                                     bool do_validate) {
  if (!do_validate && options.snapshot != nullptr) {
    return Status::InvalidArgument(
        "GetForUpdate: with a snapshot and do_validate false it is not defined");
  }
  NACRE_RETURN_IF_ERROR(
      LockKey(family, key, /*read_only=*/true, exclusive, do_validate, /*assume_tracked=*/false));
  return value == nullptr ? Status::OK() : Get(options, family, key, value);
}

std::unique_ptr<Iterator> TransactionBase::GetIterator(const ReadOptions& options,
                                                       ColumnFamilyHandle* family) {
  return batch_.NewIteratorOver(db_, family, db_->NewIterator(options, family), options);
}

Status Transaction::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                        std::string* value) {
  PinnableSlice pinned;
  NACRE_RETURN_IF_ERROR(Get(options, family, key, &pinned));
  value->assign(pinned.data(), pinned.size());
  return Status::OK();
}

Status Transaction::GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family,
                                 const Slice& key, std::string* value, bool exclusive,
                                 bool do_validate) {
  PinnableSlice pinned;
  NACRE_RETURN_IF_ERROR(GetForUpdate(options, family, key, value == nullptr ? nullptr : &pinned,
                                     exclusive, do_validate));
  if (value != nullptr) value->assign(pinned.data(), pinned.size());
  return Status::OK();
}

std::vector<Status> Transaction::MultiGet(const ReadOptions& options,
                                          const std::vector<Slice>& keys,
                                          std::vector<std::string>* values) {
  std::vector<PinnableSlice> pinned(keys.size());
  std::vector<Status> statuses(keys.size());
  MultiGet(options, nullptr, keys.size(), keys.data(), pinned.data(), statuses.data());
  values->resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) (*values)[i].assign(pinned[i].data(), pinned[i].size());
  return statuses;
}

std::vector<Status> Transaction::MultiGetForUpdate(const ReadOptions& options,
                                                   const std::vector<Slice>& keys,
                                                   std::vector<std::string>* values) {
  for (const Slice& key : keys) {
    const Status status = GetForUpdate(options, key, static_cast<std::string*>(nullptr));
    if (!status.ok()) return std::vector<Status>(keys.size(), status);
  }
  return MultiGet(options, keys, values);
}

// ---- Updates ----------------------------------------------------------------------------------

Status TransactionBase::AddPut(ColumnFamilyHandle* family, const Slice& key, const Slice& value) {
  NACRE_RETURN_IF_ERROR(indexing_ ? batch_.Put(family, key, value)
                                  : batch_.GetWriteBatch()->Put(family, key, value));
  ++counts_.puts;
  return Status::OK();
}

Status TransactionBase::AddMerge(ColumnFamilyHandle* family, const Slice& key,
                                 const Slice& operand) {
  NACRE_RETURN_IF_ERROR(indexing_ ? batch_.Merge(family, key, operand)
                                  : batch_.GetWriteBatch()->Merge(family, key, operand));
  ++counts_.merges;
  return Status::OK();
}

Status TransactionBase::AddDelete(ColumnFamilyHandle* family, const Slice& key) {
  NACRE_RETURN_IF_ERROR(indexing_ ? batch_.Delete(family, key)
                                  : batch_.GetWriteBatch()->Delete(family, key));
  ++counts_.deletes;
  return Status::OK();
}

Status TransactionBase::AddSingleDelete(ColumnFamilyHandle* family, const Slice& key) {
  NACRE_RETURN_IF_ERROR(indexing_ ? batch_.SingleDelete(family, key)
                                  : batch_.GetWriteBatch()->SingleDelete(family, key));
  ++counts_.deletes;
  return Status::OK();
}

Status TransactionBase::Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value,
                            bool assume_tracked) {
  NACRE_RETURN_IF_ERROR(LockKey(family, key, /*read_only=*/false, /*exclusive=*/true,
                                /*do_validate=*/!assume_tracked, assume_tracked));
  return AddPut(family, key, value);
}

Status TransactionBase::Merge(ColumnFamilyHandle* family, const Slice& key, const Slice& operand,
                              bool assume_tracked) {
  NACRE_RETURN_IF_ERROR(LockKey(family, key, /*read_only=*/false, /*exclusive=*/true,
                                /*do_validate=*/!assume_tracked, assume_tracked));
  return AddMerge(family, key, operand);
}

Status TransactionBase::Delete(ColumnFamilyHandle* family, const Slice& key, bool assume_tracked) {
  NACRE_RETURN_IF_ERROR(LockKey(family, key, /*read_only=*/false, /*exclusive=*/true,
                                /*do_validate=*/!assume_tracked, assume_tracked));
  return AddDelete(family, key);
}

Status TransactionBase::SingleDelete(ColumnFamilyHandle* family, const Slice& key,
                                     bool assume_tracked) {
  NACRE_RETURN_IF_ERROR(LockKey(family, key, /*read_only=*/false, /*exclusive=*/true,
                                /*do_validate=*/!assume_tracked, assume_tracked));
  return AddSingleDelete(family, key);
}

Status TransactionBase::PutUntracked(ColumnFamilyHandle* family, const Slice& key,
                                     const Slice& value) {
  NACRE_RETURN_IF_ERROR(LockKey(family, key, false, true, /*do_validate=*/false, false));
  return AddPut(family, key, value);
}

Status TransactionBase::MergeUntracked(ColumnFamilyHandle* family, const Slice& key,
                                       const Slice& operand) {
  NACRE_RETURN_IF_ERROR(LockKey(family, key, false, true, /*do_validate=*/false, false));
  return AddMerge(family, key, operand);
}

Status TransactionBase::DeleteUntracked(ColumnFamilyHandle* family, const Slice& key) {
  NACRE_RETURN_IF_ERROR(LockKey(family, key, false, true, /*do_validate=*/false, false));
  return AddDelete(family, key);
}

Status TransactionBase::SingleDeleteUntracked(ColumnFamilyHandle* family, const Slice& key) {
  NACRE_RETURN_IF_ERROR(LockKey(family, key, false, true, /*do_validate=*/false, false));
  return AddSingleDelete(family, key);
}

/// Makes the updates of a batch those of a transaction.
class TransactionBase::Rebuilder final : public WriteBatch::Handler {
 public:
  Rebuilder(TransactionBase* transaction, bool skip_dropped)
      : transaction_(transaction), skip_dropped_(skip_dropped) {}

  Status PutCF(uint32_t family, const Slice& key, const Slice& value) override {
    return Add(family, [&](ColumnFamilyHandle* handle) {
      return transaction_->Put(handle, key, value, /*assume_tracked=*/false);
    });
  }
  Status DeleteCF(uint32_t family, const Slice& key) override {
    return Add(family, [&](ColumnFamilyHandle* handle) {
      return transaction_->Delete(handle, key, /*assume_tracked=*/false);
    });
  }
  Status SingleDeleteCF(uint32_t family, const Slice& key) override {
    return Add(family, [&](ColumnFamilyHandle* handle) {
      return transaction_->SingleDelete(handle, key, /*assume_tracked=*/false);
    });
  }
  Status MergeCF(uint32_t family, const Slice& key, const Slice& operand) override {
    return Add(family, [&](ColumnFamilyHandle* handle) {
      return transaction_->Merge(handle, key, operand, /*assume_tracked=*/false);
    });
  }
  Status DeleteRangeCF(uint32_t /*family*/, const Slice& /*begin*/, const Slice& /*end*/) override {
    return Status::NotSupported("DeleteRange in a transaction");
  }
  void LogData(const Slice& blob) override {
    transaction_->PutLogData(blob).IgnoreError();  // It fitted into the other batch.
  }

 private:
  template <typename AddUpdate>
  Status Add(uint32_t family, AddUpdate add) {
    std::unique_ptr<ColumnFamilyHandle>& handle = handles_[family];
    if (handle == nullptr) handle = transaction_->FindHandle(family);
    if (handle != nullptr) return add(handle.get());
    if (skip_dropped_) return Status::OK();
    return Status::InvalidArgument("there is no column family " + std::to_string(family));
  }

  TransactionBase* const transaction_;
  const bool skip_dropped_;
  std::map<uint32_t, std::unique_ptr<ColumnFamilyHandle>> handles_;
};

Status TransactionBase::AddBatch(const WriteBatch& batch, bool skip_dropped) {
  Rebuilder rebuilder(this, skip_dropped);
  return batch.Iterate(&rebuilder);
}

}  // namespace nacre
