#pragma once

#include <rocksdb/db.h>
#include <rocksdb/snapshot.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "adapters/rocksdb/convert.h"
#include "nacre/column_family.h"
#include "nacre/db.h"

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

  /// `db` must outlive it. `options`: those that the family was opened or made with.
  FamilyHandle(nacre::DB* db, nacre::ColumnFamilyHandle* ours,
               const rocksdb::ColumnFamilyOptions& options, Owns owns)
      : db_(db), ours_(ours), options_(options), owns_(owns) {}
  ~FamilyHandle() override {
    if (owns_ == Owns::kHandle) (void)db_->DestroyColumnFamilyHandle(ours_);
  }

  const std::string& GetName() const override { return ours_->GetName(); }
  uint32_t GetID() const override { return ours_->GetID(); }
  rocksdb::Status GetDescriptor(rocksdb::ColumnFamilyDescriptor* descriptor) override {
    *descriptor = {GetName(), CurrentOptions()};
    return rocksdb::Status::OK();
  }
  const rocksdb::Comparator* GetComparator() const override { return options_.comparator; }

  nacre::ColumnFamilyHandle* ours() const { return ours_; }
  /// With what SetOptions has changed since.
  rocksdb::ColumnFamilyOptions CurrentOptions() const {
    rocksdb::ColumnFamilyOptions now = options_;
    CopyMutable(db_->GetOptions(ours_), &now);
    return now;
  }

 private:
  nacre::DB* const db_;
  nacre::ColumnFamilyHandle* const ours_;
  const rocksdb::ColumnFamilyOptions options_;
  const Owns owns_;
};

}  // namespace nacre::rocksdb_api
