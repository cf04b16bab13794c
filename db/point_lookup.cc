#include "db/point_lookup.h"

#include <string>
#include <utility>

namespace nacre {

void PointLookup::Start(const Version* version, const memnode::TableStore* store, const Slice& key,
                        uint64_t hash, SequenceNumber snapshot, bool verify_checksums) {
  version_ = version;
  store_ = store;
  key_ = key;
  hash_ = hash;
  snapshot_ = snapshot;
  verify_checksums_ = verify_checksums;
  table_ = nullptr;
  level0_next_ = 0;
  level_ = 0;
  candidate_ = candidate_count_ = 0;
  bucket_wanted_ = false;
  attempt_ = 0;
  status_ = Status::OK();
}

void PointLookup::Prefetch() const {
  for (const auto& table : version_->tables(0)) table->tier()->Prefetch(hash_);
  for (int level = 1; level < version_->depth(); ++level) {
    const TableHandle* table = version_->sorted_level(level).Find(key_);
    if (table != nullptr) table->tier()->Prefetch(hash_);
  }
}

bool PointLookup::NextTable() {
  if (level_ == 0) {
    const TableList& tables = version_->tables(0);
    if (level0_next_ < tables.size()) {
      table_ = tables[level0_next_++].get();
      return true;
    }
  }
  while (++level_ < version_->depth()) {
    table_ = version_->sorted_level(level_).Find(key_);
    if (table_ != nullptr) return true;
  }
  return false;
}

bool PointLookup::Next(memnode::PointRead* read) {
  if (!status_.ok()) return false;
  for (;;) {
    uint64_t offset = 0;
    if (candidate_ < candidate_count_) {
      offset = candidates_[candidate_].offset;
      read->length = candidates_[candidate_].length;
    } else if (bucket_wanted_) {
      const PointIndexShape& shape = table_->tier()->shape();
      offset = table_->meta().point_index.offset +
               (shape.HomeBucket(hash_) + static_cast<uint64_t>(bucket_distance_)) *
                   kPointIndexBucketBytes;
      read->length = kPointIndexBucketBytes;
    } else {
      if (!NextTable()) return false;
      const PointTier* tier = table_->tier();
      candidate_ = 0;
      candidate_count_ = 0;
      if (tier->kind() == PointTier::Kind::kIndex) {
        candidate_count_ = tier->index().Lookup(hash_, candidates_);
      } else if (tier->bloom().MayContain(hash_)) {
        bucket_wanted_ = true;
        bucket_distance_ = 0;
      }
      continue;
    }
    read->from = store_->Resolve(table_->meta().placement, offset, attempt_);
    if (read->from.valid()) return true;
    if (attempt_ == 0) {
      Fail(Status::Unavailable("no node that holds table " + std::to_string(table_->id()) +
                               " is left"));
    }
    return false;
  }
}

void PointLookup::Fail(Status status) { status_ = std::move(status); }

PointLookup::Outcome PointLookup::Consume(const memnode::PointRead& read, Record* record) {
  if (!read.status.ok()) {
    // Another copy may answer; Next finds it, or leaves this failure standing.
    ++attempt_;
    memnode::PointRead retry;
    if (Next(&retry)) return Outcome::kContinue;
    Fail(read.status);
    return Outcome::kFailed;
  }
  if (candidate_ >= candidate_count_) return ConsumeBucket(read);

  switch (table_->reader().MatchRecord(Slice(read.data, read.length), key_, snapshot_,
                                       verify_checksums_, record)) {
    case TableReader::Match::kNo:
      attempt_ = 0;
      ++candidate_;
      return Outcome::kContinue;
    case TableReader::Match::kYes:
      return Outcome::kFound;
    case TableReader::Match::kOlder:
      return Outcome::kOlder;
    case TableReader::Match::kTruncated:
    case TableReader::Match::kCorrupt:
      break;
  }
  ++attempt_;
  memnode::PointRead retry;
  if (Next(&retry)) return Outcome::kContinue;
  Fail(Status::Corruption("table " + std::to_string(table_->id()) + " at offset " +
                          std::to_string(candidates_[candidate_].offset) +
                          ": record does not match its checksum"));
  return Outcome::kFailed;
}

PointLookup::Outcome PointLookup::ConsumeBucket(const memnode::PointRead& read) {
  attempt_ = 0;
  candidate_ = 0;
  bool more = false;
  candidate_count_ = PointIndex::LookupBucket(table_->tier()->shape(), read.data, bucket_distance_,
                                              hash_, candidates_, &more);
  ++bucket_distance_;
  bucket_wanted_ = more;
  for (int i = 0; i < candidate_count_; ++i) {
    if (candidates_[i].offset + candidates_[i].length > table_->meta().records.length) {
      Fail(Status::Corruption("table " + std::to_string(table_->id()) +
                              ": point index bucket names a record outside of the table"));
      return Outcome::kFailed;
    }
  }
  return Outcome::kContinue;
}

}  // namespace nacre
