#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/utilities/transaction.h"
#include "nacre/utilities/write_batch_with_index.h"
#include "transactions/key_tracker.h"

namespace nacre {

/// The base of transactions of both kinds: the indexed batch, reads through it, save points,
/// snapshots, and the record of the keys. Derived classes say what it takes to touch a key
/// (`TryLock`) and how it ends.
class TransactionBase : public Transaction {
 public:
  using Transaction::Delete;
  using Transaction::DeleteUntracked;
  using Transaction::Get;
  using Transaction::GetForUpdate;
  using Transaction::GetIterator;
  using Transaction::Merge;
  using Transaction::MergeUntracked;
  using Transaction::MultiGet;
  using Transaction::Put;
  using Transaction::PutUntracked;
  using Transaction::SingleDelete;
  using Transaction::SingleDeleteUntracked;
  using Transaction::UndoGetForUpdate;

  void SetSnapshot() override;
  void SetSnapshotOnNextOperation(std::shared_ptr<TransactionNotifier> notifier) override;
  const Snapshot* GetSnapshot() const override { return snapshot_.get(); }
  void ClearSnapshot() override;
  void SetSavePoint() override;
  Status RollbackToSavePoint() override;
  Status PopSavePoint() override;
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             PinnableSlice* value) override;
  void MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                const Slice* keys, PinnableSlice* values, Status* statuses,
                bool sorted_input) override;
  Status GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                      PinnableSlice* value, bool exclusive, bool do_validate) override;
  std::unique_ptr<Iterator> GetIterator(const ReadOptions& options,
                                        ColumnFamilyHandle* family) override;
  Status Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value,
             bool assume_tracked) override;
  Status Merge(ColumnFamilyHandle* family, const Slice& key, const Slice& operand,
               bool assume_tracked) override;
  Status Delete(ColumnFamilyHandle* family, const Slice& key, bool assume_tracked) override;
  Status SingleDelete(ColumnFamilyHandle* family, const Slice& key, bool assume_tracked) override;
  Status PutUntracked(ColumnFamilyHandle* family, const Slice& key, const Slice& value) override;
  Status MergeUntracked(ColumnFamilyHandle* family, const Slice& key,
                        const Slice& operand) override;
  Status DeleteUntracked(ColumnFamilyHandle* family, const Slice& key) override;
  Status SingleDeleteUntracked(ColumnFamilyHandle* family, const Slice& key) override;
  Status PutLogData(const Slice& blob) override { return batch_.PutLogData(blob); }
  void DisableIndexing() override { indexing_ = false; }
  void EnableIndexing() override { indexing_ = true; }
  uint64_t GetNumKeys() const override { return tracked_.size(); }
  uint64_t GetNumPuts() const override { return counts_.puts; }
  uint64_t GetNumDeletes() const override { return counts_.deletes; }
  uint64_t GetNumMerges() const override { return counts_.merges; }
  uint64_t GetElapsedTime() const override;
  WriteBatchWithIndex* GetWriteBatch() override { return &batch_; }
  Status RebuildFromWriteBatch(WriteBatch* batch) override {
    return AddBatch(*batch, /*skip_dropped=*/false);
  }
  const WriteOptions& GetWriteOptions() const override { return write_options_; }
  void SetWriteOptions(const WriteOptions& options) override { write_options_ = options; }
  void UndoGetForUpdate(ColumnFamilyHandle* family, const Slice& key) override;

 protected:
  /// `db` outlives it, and neither takes locks nor checks anything.
  TransactionBase(DB* db, const WriteOptions& options, const Comparator* comparator,
                  size_t max_batch_bytes);

  /// Does what a key needs before it is written or, with `read_only`, got for update. If it fails
  /// or throws, the key is locked and tracked as before.
  virtual Status TryLock(ColumnFamilyHandle* family, const Slice& key, bool read_only,
                         bool exclusive, bool do_validate, bool assume_tracked) = 0;
  /// The key is not tracked any more.
  virtual void Unlock(uint32_t family, const Slice& key) = 0;
  /// That of a family of the database; null if there is none.
  virtual std::unique_ptr<ColumnFamilyHandle> FindHandle(uint32_t family) const = 0;

  /// Serves TryLock. If it throws, nothing has changed.
  void TrackKey(uint32_t family, const Slice& key, SequenceNumber sequence, bool read_only,
                bool exclusive);
  void SetSnapshotIfNeeded();
  /// As SetSnapshot, of one that there is.
  void UseSnapshot(std::shared_ptr<const Snapshot> snapshot);
  /// As RebuildFromWriteBatch; with `skip_dropped`, without what is of families that are no more.
  Status AddBatch(const WriteBatch& batch, bool skip_dropped);
  /// Forgets everything but the options; it begins anew.
  void Clear();

  DB* db() const { return db_; }
  const KeyTracker& tracked() const { return tracked_; }
  const std::shared_ptr<const Snapshot>& shared_snapshot() const { return snapshot_; }
  uint64_t start_nanos() const { return start_nanos_; }
  /// Makes a snapshot, which is released with its last reference.
  std::shared_ptr<const Snapshot> NewSnapshot() const;

 private:
  class Rebuilder;
  struct Counts {
    uint64_t puts = 0;
    uint64_t deletes = 0;
    uint64_t merges = 0;
  };
  /// The state when it was set, and what was tracked since.
  struct SavePoint {
    std::shared_ptr<const Snapshot> snapshot;
    bool snapshot_needed;
    std::shared_ptr<TransactionNotifier> notifier;
    Counts counts;
    KeyTracker tracked;
  };

  /// TryLock; what is thrown in it is its answer.
  Status LockKey(ColumnFamilyHandle* family, const Slice& key, bool read_only, bool exclusive,
                 bool do_validate, bool assume_tracked);
  Status AddPut(ColumnFamilyHandle* family, const Slice& key, const Slice& value);
  Status AddMerge(ColumnFamilyHandle* family, const Slice& key, const Slice& operand);
  Status AddDelete(ColumnFamilyHandle* family, const Slice& key);
  Status AddSingleDelete(ColumnFamilyHandle* family, const Slice& key);

  DB* const db_;
  WriteOptions write_options_;
  uint64_t start_nanos_;
  WriteBatchWithIndex batch_;
  bool indexing_ = true;
  Counts counts_;
  KeyTracker tracked_;
  std::shared_ptr<const Snapshot> snapshot_;
  bool snapshot_needed_ = false;
  std::shared_ptr<TransactionNotifier> notifier_;
  std::vector<SavePoint> save_points_;
};

}  // namespace nacre
