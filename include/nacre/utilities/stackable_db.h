#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nacre/db.h"

namespace nacre {

/// A database over another one, which it owns: passes every call on. What builds on a database and
/// changes some of its calls derives from it. RocksDB's.
class StackableDB : public DB {
 public:
  /// Others may own it, too.
  explicit StackableDB(std::shared_ptr<DB> db) : db_(std::move(db)) {}

  /// What it stands on.
  virtual DB* GetBaseDB() { return db_.get(); }

  using DB::CompactRange;
  using DB::CreateColumnFamilies;
  using DB::Delete;
  using DB::DeleteRange;
  using DB::Flush;
  using DB::Get;
  using DB::GetApproximateMemTableStats;
  using DB::GetApproximateSizes;
  using DB::GetColumnFamilyMetaData;
  using DB::GetIntProperty;
  using DB::GetMapProperty;
  using DB::GetOptions;
  using DB::GetProperty;
  using DB::KeyMayExist;
  using DB::Merge;
  using DB::MultiGet;
  using DB::NewIterator;
  using DB::NumberLevels;
  using DB::Put;
  using DB::SetOptions;
  using DB::SingleDelete;
  Status Close() override { return db_->Close(); }
  Status CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                            ColumnFamilyHandle** handle) override {
    return db_->CreateColumnFamily(options, name, handle);
  }
  Status CreateColumnFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                              std::vector<ColumnFamilyHandle*>* handles) override {
    return db_->CreateColumnFamilies(families, handles);
  }
  Status DropColumnFamily(ColumnFamilyHandle* family) override {
    return db_->DropColumnFamily(family);
  }
  Status DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& families) override {
    return db_->DropColumnFamilies(families);
  }
  Status DestroyColumnFamilyHandle(ColumnFamilyHandle* family) override {
    return db_->DestroyColumnFamilyHandle(family);
  }
  ColumnFamilyHandle* DefaultColumnFamily() const override { return db_->DefaultColumnFamily(); }
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
             const Slice& value) override {
    return db_->Put(options, family, key, value);
  }
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family,
                const Slice& key) override {
    return db_->Delete(options, family, key);
  }
  Status SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                      const Slice& key) override {
    return db_->SingleDelete(options, family, key);
  }
  Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& begin,
                     const Slice& end) override {
    return db_->DeleteRange(options, family, begin, end);
  }
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
               const Slice& operand) override {
    return db_->Merge(options, family, key, operand);
  }
  Status Write(const WriteOptions& options, WriteBatch* updates) override {
    return db_->Write(options, updates);
  }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             PinnableSlice* value) override {
    return db_->Get(options, family, key, value);
  }
  Status GetMergeOperands(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                          PinnableSlice* merge_operands,
                          GetMergeOperandsOptions* get_merge_operands_options,
                          int* number_of_operands) override {
    return db_->GetMergeOperands(options, family, key, merge_operands, get_merge_operands_options,
                                 number_of_operands);
  }
  void MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                const Slice* keys, PinnableSlice* values, Status* statuses) override {
    db_->MultiGet(options, family, num_keys, keys, values, statuses);
  }
  std::vector<Status> MultiGet(const ReadOptions& options,
                               const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override {
    return db_->MultiGet(options, families, keys, values);
  }
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options,
                                        ColumnFamilyHandle* family) override {
    return db_->NewIterator(options, family);
  }
  Status NewIterators(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                      std::vector<std::unique_ptr<Iterator>>* iterators) override {
    return db_->NewIterators(options, families, iterators);
  }
  const Snapshot* GetSnapshot() override { return db_->GetSnapshot(); }
  void ReleaseSnapshot(const Snapshot* snapshot) override { db_->ReleaseSnapshot(snapshot); }
  Status FlushWAL(bool sync) override { return db_->FlushWAL(sync); }
  Status Flush(const FlushOptions& options, ColumnFamilyHandle* family) override {
    return db_->Flush(options, family);
  }
  Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family,
                      const Slice* begin, const Slice* end) override {
    return db_->CompactRange(options, family, begin, end);
  }
  Status WaitForCompact() override { return db_->WaitForCompact(); }
  Status VerifyChecksum() override { return db_->VerifyChecksum(); }
  Status TryCatchUpWithPrimary() override { return db_->TryCatchUpWithPrimary(); }
  Status GetUpdatesSince(uint64_t sequence,
                         std::unique_ptr<TransactionLogIterator>* updates) override {
    return db_->GetUpdatesSince(sequence, updates);
  }
  Status WaitForArchive(uint64_t sequence, std::chrono::milliseconds timeout) override {
    return db_->WaitForArchive(sequence, timeout);
  }
  bool GetProperty(ColumnFamilyHandle* family, const Slice& property, std::string* value) override {
    return db_->GetProperty(family, property, value);
  }
  bool GetIntProperty(ColumnFamilyHandle* family, const Slice& property, uint64_t* value) override {
    return db_->GetIntProperty(family, property, value);
  }
  Status GetApproximateSizes(ColumnFamilyHandle* family, const Range* ranges, int n,
                             uint64_t* sizes) override {
    return db_->GetApproximateSizes(family, ranges, n, sizes);
  }
  bool KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                   std::string* value, bool* value_found = nullptr) override {
    return db_->KeyMayExist(options, family, key, value, value_found);
  }
  Status SuggestCompactRange(ColumnFamilyHandle* family, const Slice* begin,
                             const Slice* end) override {
    return db_->SuggestCompactRange(family, begin, end);
  }
  Status PauseBackgroundWork() override { return db_->PauseBackgroundWork(); }
  Status ContinueBackgroundWork() override { return db_->ContinueBackgroundWork(); }
  Status EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& families) override {
    return db_->EnableAutoCompaction(families);
  }
  void DisableManualCompaction() override { db_->DisableManualCompaction(); }
  void EnableManualCompaction() override { db_->EnableManualCompaction(); }
  Status Resume() override { return db_->Resume(); }
  bool GetMapProperty(ColumnFamilyHandle* family, const Slice& property,
                      std::map<std::string, std::string>* value) override {
    return db_->GetMapProperty(family, property, value);
  }
  bool GetAggregatedIntProperty(const Slice& property, uint64_t* value) override {
    return db_->GetAggregatedIntProperty(property, value);
  }
  Status ResetStats() override { return db_->ResetStats(); }
  void GetApproximateMemTableStats(ColumnFamilyHandle* family, const Range& range, uint64_t* count,
                                   uint64_t* size) override {
    db_->GetApproximateMemTableStats(family, range, count, size);
  }
  void GetLiveTablesMetaData(std::vector<LiveTableMetaData>* tables) override {
    db_->GetLiveTablesMetaData(tables);
  }
  void GetColumnFamilyMetaData(ColumnFamilyHandle* family,
                               ColumnFamilyMetaData* metadata) override {
    db_->GetColumnFamilyMetaData(family, metadata);
  }
  int NumberLevels(ColumnFamilyHandle* family) override { return db_->NumberLevels(family); }
  Options GetOptions(ColumnFamilyHandle* family) const override { return db_->GetOptions(family); }
  DBOptions GetDBOptions() const override { return db_->GetDBOptions(); }
  Status SetOptions(ColumnFamilyHandle* family,
                    const std::unordered_map<std::string, std::string>& changes) override {
    return db_->SetOptions(family, changes);
  }
  Status SetDBOptions(const std::unordered_map<std::string, std::string>& changes) override {
    return db_->SetDBOptions(changes);
  }
  const std::string& GetName() const override { return db_->GetName(); }
  uint64_t GetLatestSequenceNumber() const override { return db_->GetLatestSequenceNumber(); }

 protected:
  const std::shared_ptr<DB> db_;
};

}  // namespace nacre
