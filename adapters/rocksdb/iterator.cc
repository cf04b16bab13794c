#include "adapters/rocksdb/iterator.h"

#include "adapters/rocksdb/engine.h"

namespace nacre::rocksdb_api {

NacreIterator::NacreIterator(Source source, const rocksdb::ReadOptions& theirs,
                             nacre::ReadOptions ours)
    : source_(std::move(source)),
      lower_bound_(theirs.iterate_lower_bound),
      upper_bound_(theirs.iterate_upper_bound),
      deadline_(theirs.deadline),
      tailing_(theirs.tailing),
      memory_only_(theirs.read_tier == rocksdb::kBlockCacheTier),
      has_snapshot_(theirs.snapshot != nullptr),
      options_(ours) {
  if (lower_bound_ != nullptr) options_.iterate_lower_bound = &lower_;
  if (upper_bound_ != nullptr) options_.iterate_upper_bound = &upper_;
  Make();
  if (!has_snapshot_) options_.snapshot = nullptr;
}

void NacreIterator::Make() {
  nacre::ColumnFamilyHandle* const family = source_.family.get();
  iterator_ = memory_only_ ? NewMemoryIterator(*source_.db, options_, family->GetID())
                           : source_.db->NewIterator(options_, family);
}

void NacreIterator::SeekToFirst() {
  if (!BeginSeek()) return;
  iterator_->SeekToFirst();
  ShowColumns();
}

void NacreIterator::SeekToLast() {
  if (!BeginSeek() || !BeginBackward("SeekToLast")) return;
  iterator_->SeekToLast();
  ShowColumns();
}

void NacreIterator::Seek(const rocksdb::Slice& target) {
  if (!BeginSeek()) return;
  iterator_->Seek(ToNacre(target));
  ShowColumns();
}

void NacreIterator::SeekForPrev(const rocksdb::Slice& target) {
  if (!BeginSeek() || !BeginBackward("SeekForPrev")) return;
  iterator_->SeekForPrev(ToNacre(target));
  ShowColumns();
}

void NacreIterator::Next() {
  if (!InTime()) return;
  iterator_->Next();
  ShowColumns();
}

void NacreIterator::Prev() {
  if (!InTime() || !BeginBackward("Prev")) return;
  iterator_->Prev();
  ShowColumns();
}

rocksdb::Status NacreIterator::Refresh() {
  if (has_snapshot_ || tailing_) {
    return rocksdb::Status::NotSupported("Refresh", "it has a snapshot, or is tailing");
  }
  failure_ = rocksdb::Status::OK();
  Make();
  return ToRocksdb(iterator_->status());
}

rocksdb::Status NacreIterator::GetProperty(std::string name, std::string* value) {
  if (value == nullptr) return rocksdb::Status::InvalidArgument("prop is nullptr");
  if (name == "rocksdb.iterator.is-key-pinned") {
    *value = Valid() ? "0" : "Iterator is not valid.";
    return rocksdb::Status::OK();
  }
  if (name == "rocksdb.iterator.internal-key" && Valid()) {
    *value = key().ToString();
    return rocksdb::Status::OK();
  }
  return rocksdb::Status::InvalidArgument("Unidentified property.");
}

bool NacreIterator::BeginSeek() {
  failure_ = rocksdb::Status::OK();
  if (lower_bound_ != nullptr) lower_ = ToNacre(*lower_bound_);
  if (upper_bound_ != nullptr) upper_ = ToNacre(*upper_bound_);
  if (!InTime()) return false;
  if (tailing_) Make();
  return true;
}

bool NacreIterator::BeginBackward(const char* call) {
  if (!tailing_) return true;
  failure_ = rocksdb::Status::NotSupported("a tailing iterator", call);
  return false;
}

bool NacreIterator::InTime() {
  if (!IsPast(deadline_, source_.env)) return true;
  failure_ = rocksdb::Status::TimedOut("ReadOptions::deadline");
  return false;
}

void NacreIterator::ShowColumns() {
  columns_.clear();
  if (!iterator_->Valid()) return;
  columns_.emplace_back(rocksdb::kDefaultWideColumnName, ToRocksdb(iterator_->value()));
}

}  // namespace nacre::rocksdb_api
