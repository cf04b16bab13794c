#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "nacre/column_family.h"
#include "nacre/comparator.h"
#include "nacre/db.h"
#include "nacre/iterator.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"

namespace nacre {

enum class WriteType : uint8_t {
  kPutRecord,
  kMergeRecord,
  kDeleteRecord,
  kSingleDeleteRecord,
};

/// An update of an indexed batch. Views the batch.
struct WriteEntry {
  WriteType type = WriteType::kPutRecord;
  Slice key;
  Slice value;  ///< Empty for deletions.
};

/// Iterates over the updates of one family in an indexed batch by key, and over those of one key in
/// the order in which they were added. It survives additions to the batch; what it showed before
/// may not. Rolling back or clearing invalidates it.
class WBWIIterator {
 public:
  WBWIIterator() = default;
  virtual ~WBWIIterator() = default;
  WBWIIterator(const WBWIIterator&) = delete;
  WBWIIterator& operator=(const WBWIIterator&) = delete;

  virtual bool Valid() const = 0;
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  /// Moves to the first update of a key >= `key`.
  virtual void Seek(const Slice& key) = 0;
  /// Moves to the last update of a key <= `key`.
  virtual void SeekForPrev(const Slice& key) = 0;
  virtual void Next() = 0;
  virtual void Prev() = 0;
  /// Requires Valid().
  virtual WriteEntry Entry() const = 0;
  virtual Status status() const = 0;
};

/// A WriteBatch whose updates can be looked up and iterated before they are written, alone or on
/// top of a database: RocksDB's. `overwrite_key` keeps in the index only the latest update of each
/// key (operands of merges are kept beside what they apply to); the batch keeps all.
///
/// Keys are ordered by the comparator of their family, or by the one given at the construction
/// where a family has none of its own.
///
/// What differs from RocksDB: iterators are owned by the caller as `std::unique_ptr`; an iterator
/// on top of a database keeps to both bounds of its ReadOptions.
///
/// Thread safety: as `std::string`; iterators count as readers.
class WriteBatchWithIndex {
 public:
  /// `max_bytes`: the batch stays below it, and what would make it longer answers `Aborted`; 0: no
  /// limit. `comparator` is not owned.
  explicit WriteBatchWithIndex(const Comparator* comparator = BytewiseComparator(),
                               size_t reserved_bytes = 0, bool overwrite_key = false,
                               size_t max_bytes = 0);
  ~WriteBatchWithIndex();
  WriteBatchWithIndex(WriteBatchWithIndex&&) noexcept;
  WriteBatchWithIndex& operator=(WriteBatchWithIndex&&) noexcept;

  /// As those of WriteBatch.
  Status Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value);
  Status Put(const Slice& key, const Slice& value) { return Put(nullptr, key, value); }
  Status Merge(ColumnFamilyHandle* family, const Slice& key, const Slice& operand);
  Status Merge(const Slice& key, const Slice& operand) { return Merge(nullptr, key, operand); }
  Status Delete(ColumnFamilyHandle* family, const Slice& key);
  Status Delete(const Slice& key) { return Delete(nullptr, key); }
  Status SingleDelete(ColumnFamilyHandle* family, const Slice& key);
  Status SingleDelete(const Slice& key) { return SingleDelete(nullptr, key); }
  /// `NotSupported`, as in RocksDB: an index of keys says nothing about ranges.
  Status DeleteRange(ColumnFamilyHandle* family, const Slice& begin, const Slice& end);
  Status DeleteRange(const Slice& begin, const Slice& end) {
    return DeleteRange(nullptr, begin, end);
  }
  /// Adds data that is not in the index.
  Status PutLogData(const Slice& blob);
  void Clear();

  /// The batch to be written to the database. The caller must not change it.
  WriteBatch* GetWriteBatch();
  size_t GetDataSize() const;

  /// Never null. The batch must outlive it.
  std::unique_ptr<WBWIIterator> NewIterator(ColumnFamilyHandle* family);
  std::unique_ptr<WBWIIterator> NewIterator() { return NewIterator(nullptr); }
  /// The database as it is with the batch: `base`, of the database, with the updates of `family` on
  /// top. `options` are those of `base` (null: defaults). The batch must outlive it, and may be
  /// added to meanwhile: the entry that is shown may be deleted or put anew.
  std::unique_ptr<Iterator> NewIteratorWithBase(ColumnFamilyHandle* family,
                                                std::unique_ptr<Iterator> base,
                                                const ReadOptions* options = nullptr);
  std::unique_ptr<Iterator> NewIteratorWithBase(std::unique_ptr<Iterator> base) {
    return NewIteratorWithBase(nullptr, std::move(base));
  }

  /// What the batch alone says of a key. `NotFound` if it was not put, or deleted since.
  /// `Incomplete` (RocksDB's MergeInProgress) if operands were added to a key of which the batch
  /// does not know the value.
  Status GetFromBatch(ColumnFamilyHandle* family, const DBOptions& options, const Slice& key,
                      std::string* value);
  Status GetFromBatch(const DBOptions& options, const Slice& key, std::string* value) {
    return GetFromBatch(nullptr, options, key, value);
  }

  /// As `DB::Get` would answer were the batch written.
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, ColumnFamilyHandle* family,
                           const Slice& key, PinnableSlice* value);
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, ColumnFamilyHandle* family,
                           const Slice& key, std::string* value);
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, const Slice& key,
                           std::string* value) {
    return GetFromBatchAndDB(db, options, nullptr, key, value);
  }
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, const Slice& key,
                           PinnableSlice* value) {
    return GetFromBatchAndDB(db, options, nullptr, key, value);
  }
  /// As `DB::MultiGet`: those that the batch does not settle are read together.
  void MultiGetFromBatchAndDB(DB* db, const ReadOptions& options, ColumnFamilyHandle* family,
                              size_t num_keys, const Slice* keys, PinnableSlice* values,
                              Status* statuses, bool sorted_input = false);

  /// As those of WriteBatch; rolling back makes the index anew.
  void SetSavePoint();
  Status RollbackToSavePoint();
  Status PopSavePoint();

 private:
  friend class TransactionBase;
  struct Rep;

  /// As NewIteratorWithBase; `db` knows the merge operator.
  std::unique_ptr<Iterator> NewIteratorOver(DB* db, ColumnFamilyHandle* family,
                                            std::unique_ptr<Iterator> base,
                                            const ReadOptions& options);

  std::unique_ptr<Rep> rep_;
};

}  // namespace nacre
