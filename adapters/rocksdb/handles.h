#pragma once

#include <rocksdb/db.h>
#include <rocksdb/snapshot.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "adapters/rocksdb/convert.h"
#include "nacre/column_family.h"
#include "nacre/db.h"
#include "nacre/merge_operator.h"

namespace nacre::rocksdb_api {

// RocksDB's names for what an open database has: snapshots and column families.

class NacreSnapshot final : public rocksdb::Snapshot {
 public:
  explicit NacreSnapshot(const nacre::Snapshot* snapshot) : snapshot_(snapshot) {}
  ~NacreSnapshot() override = default;
  rocksdb::SequenceNumber GetSequenceNumber() const override {
    return snapshot_->GetSequenceNumber();
  }
  int64_t GetUnixTime() const override { return seconds_; }
  uint64_t GetTimestamp() const override { return UINT64_MAX; }
  const nacre::Snapshot* ours() const { return snapshot_; }

 private:
  const nacre::Snapshot* const snapshot_;
  const int64_t seconds_ = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
};

/// A column family. As RocksDB's, its handle may also be given back by deleting it.
/// Thread safety: as nacre::ColumnFamilyHandle.
class FamilyHandle final : public rocksdb::ColumnFamilyHandle {
 public:
  enum class Owns : uint8_t {
    kNothing,  ///< It stands for the handle of the default family, which is the database's.
    kHandle,
  };

  /// `db` must outlive it and its iterators. `options`: those that were given for the family.
  FamilyHandle(nacre::DB* db, nacre::ColumnFamilyHandle* ours,
               const rocksdb::ColumnFamilyOptions& options, Owns owns)
      : db_(db),
        ours_(ours,
              [db, owns](nacre::ColumnFamilyHandle* handle) {
                if (owns == Owns::kHandle) (void)db->DestroyColumnFamilyHandle(handle);
              }),
        options_(options),
        merge_operator_(db->GetOptions(ours).merge_operator) {}

  const std::string& GetName() const override { return ours_->GetName(); }
  uint32_t GetID() const override { return ours_->GetID(); }
  rocksdb::Status GetDescriptor(rocksdb::ColumnFamilyDescriptor* descriptor) override {
    *descriptor = {GetName(), CurrentOptions()};
    return rocksdb::Status::OK();
  }
  const rocksdb::Comparator* GetComparator() const override { return options_.comparator; }

  nacre::ColumnFamilyHandle* ours() const { return ours_.get(); }
  /// Null if the family has none.
  const nacre::MergeOperator* merge_operator() const { return merge_operator_.get(); }
  /// Iterators keep it.
  const std::shared_ptr<nacre::ColumnFamilyHandle>& shared() const { return ours_; }
  /// Whether the family was dropped, by this handle, as it is the family's only one.
  bool dropped() const { return dropped_.load(std::memory_order_acquire); }
  /// Pairs with `dropped`.
  void MarkDropped() { dropped_.store(true, std::memory_order_release); }
  /// The options in force: as Nacre has moved them into their bounds, and as SetOptions has changed
  /// them since.
  rocksdb::ColumnFamilyOptions CurrentOptions() const {
    rocksdb::ColumnFamilyOptions now = options_;
    CopyInForce(db_->GetOptions(ours_.get()), &now);
    return now;
  }

 private:
  nacre::DB* const db_;
  const std::shared_ptr<nacre::ColumnFamilyHandle> ours_;
  const rocksdb::ColumnFamilyOptions options_;
  const std::shared_ptr<nacre::MergeOperator> merge_operator_;
  std::atomic<bool> dropped_{false};
};

}  // namespace nacre::rocksdb_api
