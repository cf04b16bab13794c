#pragma once

#include <rocksdb/env.h>
#include <rocksdb/iterator.h>
#include <rocksdb/options.h>
#include <rocksdb/wide_columns.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "adapters/rocksdb/convert.h"
#include "nacre/column_family.h"
#include "nacre/db.h"
#include "nacre/iterator.h"
#include "nacre/options.h"

namespace nacre::rocksdb_api {

/// A failure that concerns this interface, as the failure of an iterator.
class FailedIterator final : public rocksdb::Iterator {
 public:
  explicit FailedIterator(rocksdb::Status status) : status_(std::move(status)) {}
  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const rocksdb::Slice& /*target*/) override {}
  void SeekForPrev(const rocksdb::Slice& /*target*/) override {}
  void Next() override {}
  void Prev() override {}
  rocksdb::Slice key() const override { return {}; }
  rocksdb::Slice value() const override { return {}; }
  rocksdb::Status status() const override { return status_; }

 private:
  const rocksdb::Status status_;
};

/// Iterates over one column family of a Nacre database.
class NacreIterator final : public rocksdb::Iterator {
 public:
  /// What it is made from, again for Refresh and for each seek if it is tailing. Both outlive it.
  struct Source {
    nacre::DB* db = nullptr;
    std::shared_ptr<nacre::ColumnFamilyHandle> family;
    rocksdb::Env* env = nullptr;  ///< Its clock is that of the deadline.
  };

  /// `ours`: of `theirs`, without the bounds; its snapshot is for the time being, if `theirs` has
  /// none. A failure shows in `status()`.
  NacreIterator(Source source, const rocksdb::ReadOptions& theirs, nacre::ReadOptions ours);

  bool Valid() const override { return failure_.ok() && iterator_->Valid(); }
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(const rocksdb::Slice& target) override;
  void SeekForPrev(const rocksdb::Slice& target) override;
  void Next() override;
  void Prev() override;
  rocksdb::Slice key() const override { return ToRocksdb(iterator_->key()); }
  rocksdb::Slice value() const override { return ToRocksdb(iterator_->value()); }
  const rocksdb::WideColumns& columns() const override { return columns_; }
  rocksdb::Status status() const override {
    return failure_.ok() ? ToRocksdb(iterator_->status()) : failure_;
  }
  rocksdb::Status Refresh() override;
  rocksdb::Status GetProperty(std::string name, std::string* value) override;

 private:
  void Make();
  /// Whether a seek may go on, within the bounds as they are now.
  bool BeginSeek();
  /// Fails for a tailing iterator, which goes forward only.
  bool BeginBackward(const char* call);
  bool InTime();
  /// The value is one column, without a name.
  void ShowColumns();

  const Source source_;
  const rocksdb::Slice* const lower_bound_;  ///< The caller's; may be null, as may be the next.
  const rocksdb::Slice* const upper_bound_;
  const std::chrono::microseconds deadline_;
  const bool tailing_;
  const bool memory_only_;
  const bool has_snapshot_;
  nacre::Slice lower_;
  nacre::Slice upper_;
  nacre::ReadOptions options_;
  std::unique_ptr<nacre::Iterator> iterator_;
  rocksdb::Status failure_;
  rocksdb::WideColumns columns_;
};

}  // namespace nacre::rocksdb_api
