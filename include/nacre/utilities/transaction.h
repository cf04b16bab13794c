#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/iterator.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/utilities/write_batch_with_index.h"
#include "nacre/write_batch.h"

namespace nacre {

class ColumnFamilyHandle;

/// Number of a transaction in its database, as long as it is open.
using TransactionID = uint64_t;
/// Has at most this many bytes (RocksDB's limit).
using TransactionName = std::string;

/// Told when a transaction takes the snapshot that `SetSnapshotOnNextOperation` asked for.
class TransactionNotifier {
 public:
  virtual ~TransactionNotifier() = default;
  virtual void SnapshotCreated(const Snapshot* snapshot) = 0;
};

/// A batch of updates that takes effect as a whole or not at all, with reads that see it before it
/// does, and with protection against what others write meanwhile, which an OptimisticTransactionDB
/// gives at `Commit` and a TransactionDB by locks. RocksDB's interface.
///
/// The caller owns a transaction and destroys it before the database. One that was neither
/// committed nor rolled back is rolled back then, unless it was prepared: then it stays prepared in
/// the database, and the next opening finds it.
///
/// What differs from RocksDB:
///
///   | here                                          | RocksDB                                    |
///   |-----------------------------------------------|--------------------------------------------|
///   | transactions are `std::unique_ptr`s, made new | plain pointers, also used again            |
///   | a failed commit can be tried again            | it has forgotten its updates               |
///   | `Aborted` for a transaction that has expired  | `Expired`                                  |
///   | `Aborted` for a batch that grew too long      | `MemoryLimit`                              |
///   | the message says deadlock, lock limit, ...    | a subcode                                  |
///   | optimistic commits look into tables           | `TryAgain` once MemTables do not suffice   |
///   | timestamps, commit-time batches: not there    | `SetCommitTimestamp`, ...                  |
///
/// Thread safety: none but for GetID, GetName, GetState, GetWaitingTxns.
class Transaction {
 public:
  enum TransactionState : int {
    STARTED = 0,
    AWAITING_PREPARE = 1,
    PREPARED = 2,
    AWAITING_COMMIT = 3,
    COMMITTED = 4,
    AWAITING_ROLLBACK = 5,
    ROLLEDBACK = 6,
    LOCKS_STOLEN = 7,
  };

  virtual ~Transaction() = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  /// Makes writes and gets for update fail for keys that others have written since this call. Reads
  /// see a snapshot only if their ReadOptions name it.
  virtual void SetSnapshot() = 0;
  /// The same, just before the next operation that writes or gets for update. `notifier` may be
  /// null.
  virtual void SetSnapshotOnNextOperation(
      std::shared_ptr<TransactionNotifier> notifier = nullptr) = 0;
  /// Null if there is none. It stays until another one is set, the snapshot is cleared, or the
  /// transaction ends.
  virtual const Snapshot* GetSnapshot() const = 0;
  virtual void ClearSnapshot() = 0;

  /// Makes a named transaction durable without letting it take effect: `Commit` and `Rollback` work
  /// after the end of this process, too, once the database is opened again. `InvalidArgument`: it
  /// has no name, or is not at work any more. `NotSupported` by optimistic ones.
  virtual Status Prepare() = 0;
  /// OK: all is in the database, as a write. Optimistic: `Busy` if others have written since what
  /// this one has read for update or written. With locks: `Aborted` if the transaction has expired.
  /// After another answer than these and OK it may take place or not, as other writes.
  virtual Status Commit() = 0;
  /// Forgets all updates, and gives up the locks.
  virtual Status Rollback() = 0;

  virtual void SetSavePoint() = 0;
  /// Undoes what was done since, with its locks, and forgets the save point. `NotFound` if there is
  /// none.
  virtual Status RollbackToSavePoint() = 0;
  /// Forgets the latest save point only. `NotFound` if there is none.
  virtual Status PopSavePoint() = 0;

  /// As `DB::Get`, with the transaction's own updates on top. Takes no lock.
  virtual Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     PinnableSlice* value) = 0;
  Status Get(const ReadOptions& options, const Slice& key, PinnableSlice* value) {
    return Get(options, nullptr, key, value);
  }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             std::string* value);
  Status Get(const ReadOptions& options, const Slice& key, std::string* value) {
    return Get(options, nullptr, key, value);
  }
  virtual void MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                        const Slice* keys, PinnableSlice* values, Status* statuses,
                        bool sorted_input = false) = 0;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values);

  /// As Get, of a key that shall stay as it is until the transaction ends: with locks, `exclusive`
  /// or shared with other readers; optimistic, by the check at Commit. `value` may be null.
  ///
  /// `do_validate` false: does not look whether the key was written since the snapshot; the read
  /// must not name a snapshot then. Besides what Get answers, with locks: `Busy` if the key was
  /// written since the snapshot, or for a deadlock; `TimedOut` if the lock could not be had.
  virtual Status GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family,
                              const Slice& key, PinnableSlice* value, bool exclusive = true,
                              bool do_validate = true) = 0;
  Status GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                      std::string* value, bool exclusive = true, bool do_validate = true);
  Status GetForUpdate(const ReadOptions& options, const Slice& key, std::string* value,
                      bool exclusive = true, bool do_validate = true) {
    return GetForUpdate(options, nullptr, key, value, exclusive, do_validate);
  }
  /// Calls GetForUpdate for each key; after a failure to lock one, every status is that.
  std::vector<Status> MultiGetForUpdate(const ReadOptions& options, const std::vector<Slice>& keys,
                                        std::vector<std::string>* values);

  /// Iterates over the database with the transaction's updates on top; see
  /// WriteBatchWithIndex::NewIteratorWithBase. The transaction must outlive it, and Commit,
  /// Rollback and RollbackToSavePoint invalidate it.
  virtual std::unique_ptr<Iterator> GetIterator(const ReadOptions& options,
                                                ColumnFamilyHandle* family) = 0;
  std::unique_ptr<Iterator> GetIterator(const ReadOptions& options) {
    return GetIterator(options, nullptr);
  }

  /// Updates. They fail as GetForUpdate does, and nothing is added then. `assume_tracked`: the key
  /// was locked by this transaction before (`InvalidArgument` if not); saves the validation.
  virtual Status Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value,
                     bool assume_tracked = false) = 0;
  Status Put(const Slice& key, const Slice& value) { return Put(nullptr, key, value); }
  virtual Status Merge(ColumnFamilyHandle* family, const Slice& key, const Slice& operand,
                       bool assume_tracked = false) = 0;
  Status Merge(const Slice& key, const Slice& operand) { return Merge(nullptr, key, operand); }
  virtual Status Delete(ColumnFamilyHandle* family, const Slice& key,
                        bool assume_tracked = false) = 0;
  Status Delete(const Slice& key) { return Delete(nullptr, key); }
  virtual Status SingleDelete(ColumnFamilyHandle* family, const Slice& key,
                              bool assume_tracked = false) = 0;
  Status SingleDelete(const Slice& key) { return SingleDelete(nullptr, key); }

  /// The same without a check of what others have written: optimistic ones do not track the key;
  /// with locks it is locked, but not compared with the snapshot.
  virtual Status PutUntracked(ColumnFamilyHandle* family, const Slice& key, const Slice& value) = 0;
  Status PutUntracked(const Slice& key, const Slice& value) {
    return PutUntracked(nullptr, key, value);
  }
  virtual Status MergeUntracked(ColumnFamilyHandle* family, const Slice& key,
                                const Slice& operand) = 0;
  Status MergeUntracked(const Slice& key, const Slice& operand) {
    return MergeUntracked(nullptr, key, operand);
  }
  virtual Status DeleteUntracked(ColumnFamilyHandle* family, const Slice& key) = 0;
  Status DeleteUntracked(const Slice& key) { return DeleteUntracked(nullptr, key); }
  virtual Status SingleDeleteUntracked(ColumnFamilyHandle* family, const Slice& key) = 0;
  Status SingleDeleteUntracked(const Slice& key) { return SingleDeleteUntracked(nullptr, key); }

  /// See WriteBatch::PutLogData.
  virtual Status PutLogData(const Slice& blob) = 0;

  /// Saves the cost of the index until EnableIndexing: Get and iterators of this transaction do not
  /// see updates made meanwhile, and reads of keys so written are undefined.
  virtual void DisableIndexing() = 0;
  virtual void EnableIndexing() = 0;

  /// The number of keys that are tracked or locked, and of updates.
  virtual uint64_t GetNumKeys() const = 0;
  virtual uint64_t GetNumPuts() const = 0;
  virtual uint64_t GetNumDeletes() const = 0;
  virtual uint64_t GetNumMerges() const = 0;
  /// Milliseconds since it began.
  virtual uint64_t GetElapsedTime() const = 0;

  /// The updates so far. The caller must not write to it, which would bypass locks and checks.
  virtual WriteBatchWithIndex* GetWriteBatch() = 0;
  /// Adds the updates of `batch`, as if they were made one by one.
  virtual Status RebuildFromWriteBatch(WriteBatch* batch) = 0;

  /// Sets how long to wait for locks, in milliseconds; -1: for as long as it takes. Optimistic
  /// transactions do not wait.
  virtual void SetLockTimeout(int64_t timeout_ms) = 0;
  virtual const WriteOptions& GetWriteOptions() const = 0;
  virtual void SetWriteOptions(const WriteOptions& options) = 0;

  /// The key may be written by others again, if this transaction has only got it for update (as
  /// often as this is called), and since the latest save point.
  virtual void UndoGetForUpdate(ColumnFamilyHandle* family, const Slice& key) = 0;
  void UndoGetForUpdate(const Slice& key) { UndoGetForUpdate(nullptr, key); }

  /// Names the transaction; must precede Prepare. `InvalidArgument`: it has one, it is another's,
  /// it is empty or longer than 512 bytes. Optimistic ones answer `NotSupported`.
  virtual Status SetName(const TransactionName& name) = 0;
  virtual TransactionName GetName() const = 0;
  virtual TransactionID GetID() const = 0;
  virtual TransactionState GetState() const = 0;

  virtual bool IsDeadlockDetect() const { return false; }
  /// Those that this one is waiting for, and the key's family and key.
  virtual std::vector<TransactionID> GetWaitingTxns(uint32_t* family, std::string* key) const = 0;

 protected:
  Transaction() = default;
};

}  // namespace nacre
