#pragma once

#include <rocksdb/iterator.h>
#include <rocksdb/options.h>

#include <memory>
#include <utility>

#include "adapters/rocksdb/convert.h"
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

/// The bounds of iterators as Nacre's slices, which have to stay as long as these: each holds them.
/// The bytes are the caller's.
class Bounds {
 public:
  explicit Bounds(const rocksdb::ReadOptions& options)
      : has_lower_(options.iterate_lower_bound != nullptr),
        has_upper_(options.iterate_upper_bound != nullptr) {
    if (has_lower_) lower_ = ToNacre(*options.iterate_lower_bound);
    if (has_upper_) upper_ = ToNacre(*options.iterate_upper_bound);
  }
  void AddTo(nacre::ReadOptions* options) const {
    if (has_lower_) options->iterate_lower_bound = &lower_;
    if (has_upper_) options->iterate_upper_bound = &upper_;
  }

 private:
  const bool has_lower_;
  const bool has_upper_;
  nacre::Slice lower_;
  nacre::Slice upper_;
};

class NacreIterator final : public rocksdb::Iterator {
 public:
  /// `bounds`: those that `iterator` was made with.
  NacreIterator(std::unique_ptr<nacre::Iterator> iterator, std::shared_ptr<const Bounds> bounds)
      : bounds_(std::move(bounds)), iterator_(std::move(iterator)) {}
  bool Valid() const override { return iterator_->Valid(); }
  void SeekToFirst() override { iterator_->SeekToFirst(); }
  void SeekToLast() override { iterator_->SeekToLast(); }
  void Seek(const rocksdb::Slice& target) override { iterator_->Seek(ToNacre(target)); }
  void SeekForPrev(const rocksdb::Slice& target) override {
    iterator_->SeekForPrev(ToNacre(target));
  }
  void Next() override { iterator_->Next(); }
  void Prev() override { iterator_->Prev(); }
  rocksdb::Slice key() const override { return ToRocksdb(iterator_->key()); }
  rocksdb::Slice value() const override { return ToRocksdb(iterator_->value()); }
  rocksdb::Status status() const override { return ToRocksdb(iterator_->status()); }

 private:
  const std::shared_ptr<const Bounds> bounds_;
  const std::unique_ptr<nacre::Iterator> iterator_;
};

}  // namespace nacre::rocksdb_api
