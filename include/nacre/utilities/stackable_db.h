#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "nacre/db.h"

namespace nacre {

/// A database over another one, which it owns: passes every call on. What builds on a database and
/// changes some of its calls derives from it. RocksDB's.
class StackableDB : public DB {
 public:
  explicit StackableDB(std::unique_ptr<DB> db) : db_(std::move(db)) {}

  /// What it stands on, owned by this.
  virtual DB* GetBaseDB() { return db_.get(); }

  using DB::Get;
  using DB::MultiGet;
  Status Close() override { return db_->Close(); }
  Status Put(const WriteOptions& options, const Slice& key, const Slice& value) override {
    return db_->Put(options, key, value);
  }
  Status Delete(const WriteOptions& options, const Slice& key) override {
    return db_->Delete(options, key);
  }
  Status SingleDelete(const WriteOptions& options, const Slice& key) override {
    return db_->SingleDelete(options, key);
  }
  Status DeleteRange(const WriteOptions& options, const Slice& begin, const Slice& end) override {
    return db_->DeleteRange(options, begin, end);
  }
  Status Merge(const WriteOptions& options, const Slice& key, const Slice& operand) override {
    return db_->Merge(options, key, operand);
  }
  Status Write(const WriteOptions& options, WriteBatch* updates) override {
    return db_->Write(options, updates);
  }
  Status Get(const ReadOptions& options, const Slice& key, PinnableSlice* value) override {
    return db_->Get(options, key, value);
  }
  void MultiGet(const ReadOptions& options, size_t num_keys, const Slice* keys,
                PinnableSlice* values, Status* statuses) override {
    db_->MultiGet(options, num_keys, keys, values, statuses);
  }
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) override {
    return db_->NewIterator(options);
  }
  const Snapshot* GetSnapshot() override { return db_->GetSnapshot(); }
  void ReleaseSnapshot(const Snapshot* snapshot) override { db_->ReleaseSnapshot(snapshot); }
  Status FlushWAL(bool sync) override { return db_->FlushWAL(sync); }
  Status Flush(const FlushOptions& options) override { return db_->Flush(options); }
  Status CompactRange(const CompactRangeOptions& options, const Slice* begin,
                      const Slice* end) override {
    return db_->CompactRange(options, begin, end);
  }
  Status WaitForCompact() override { return db_->WaitForCompact(); }
  Status VerifyChecksum() override { return db_->VerifyChecksum(); }
  Status TryCatchUpWithPrimary() override { return db_->TryCatchUpWithPrimary(); }
  bool GetProperty(const Slice& property, std::string* value) override {
    return db_->GetProperty(property, value);
  }
  bool GetIntProperty(const Slice& property, uint64_t* value) override {
    return db_->GetIntProperty(property, value);
  }
  Status GetApproximateSizes(const Range* ranges, int n, uint64_t* sizes) override {
    return db_->GetApproximateSizes(ranges, n, sizes);
  }
  const std::string& GetName() const override { return db_->GetName(); }
  uint64_t GetLatestSequenceNumber() const override { return db_->GetLatestSequenceNumber(); }

 protected:
  const std::unique_ptr<DB> db_;
};

}  // namespace nacre
