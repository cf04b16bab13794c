#pragma once

#include <rocksdb/write_batch.h>

#include <set>

#include "nacre/db.h"

namespace nacre::rocksdb_api {

/// A batch for `WriteOptions::ignore_missing_column_families`: without the updates of families that
/// there are not.
/// Thread safety: none.
class BatchFilter final : public rocksdb::WriteBatch::Handler {
 public:
  using Slice = rocksdb::Slice;
  using Status = rocksdb::Status;

  /// `db` must outlive it.
  explicit BatchFilter(const nacre::DB* db) : db_(db) {}

  /// `batch` in the place of what there was. Fails as iterating it does.
  Status Filter(const rocksdb::WriteBatch& batch);
  const rocksdb::WriteBatch& kept() const { return kept_; }
  /// Whether a family whose updates were kept was dropped since.
  bool LostFamily() const;

  Status PutCF(uint32_t id, const Slice& key, const Slice& value) override;
  Status DeleteCF(uint32_t id, const Slice& key) override;
  Status SingleDeleteCF(uint32_t id, const Slice& key) override;
  Status DeleteRangeCF(uint32_t id, const Slice& begin, const Slice& end) override;
  Status MergeCF(uint32_t id, const Slice& key, const Slice& operand) override;
  void LogData(const Slice& /*blob*/) override {}

 private:
  bool Has(uint32_t id);

  const nacre::DB* const db_;
  rocksdb::WriteBatch kept_;
  std::set<uint32_t> present_;
  std::set<uint32_t> missing_;
};

}  // namespace nacre::rocksdb_api
