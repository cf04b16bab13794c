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
  bucket_ = PointIndex::kNoBucket;
  copy_ = 0;
  failure_ = Status::OK();
  outcome_ = Outcome::kContinue;
  status_ = Status::OK();
}

void PointLookup::Prefetch() const {
  const TableList& level0 = version_->tables(0);
  for (size_t i = 0; i < level0.size(); ++i) {
    if (version_->Level0Holds(i, key_)) level0[i]->tier()->Prefetch(hash_);
  }
  for (int level = 1; level < version_->depth(); ++level) {
    const TableHandle* table = version_->sorted_level(level).Find(key_);
    if (table != nullptr) table->tier()->Prefetch(hash_);
  }
}

bool PointLookup::NextTable() {
  if (level_ == 0) {
    const TableList& tables = version_->tables(0);
    while (level0_next_ < tables.size()) {
      const size_t i = level0_next_++;
      if (!version_->Level0Holds(i, key_)) continue;
      table_ = tables[i].get();
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
  while (outcome_ == Outcome::kContinue) {
    uint64_t offset = 0;
    if (candidate_ < candidate_count_) {
      offset = candidates_[candidate_].offset;
      read->length = candidates_[candidate_].length;
    } else if (bucket_ != PointIndex::kNoBucket) {
      offset = table_->meta().point_index.offset + bucket_ * kPointIndexBucketBytes;
      read->length = kPointIndexBucketBytes;
    } else {
      if (!NextTable()) return false;
      const PointTier* tier = table_->tier();
      if (tier->kind() == PointTier::Kind::kIndex) {
        SetCandidates(tier->index().Lookup(hash_, candidates_));
      } else if (tier->bloom().MayContain(hash_)) {
        shape_ = &tier->shape();
        bucket_ = shape_->HomeBucket(hash_);
        bucket_is_home_ = true;
      }
      continue;
    }
    const Placement& placement = table_->meta().placement;
    for (; copy_ < static_cast<int>(placement.fragments.size()); ++copy_) {
      read->from = store_->Resolve(placement, offset, copy_);
      if (read->from.valid()) [[likely]]
        return true;
    }
    Fail(failure_.ok() ? AllCopiesLost() : std::move(failure_));
  }
  return false;
}

Status PointLookup::AllCopiesLost() const {
  std::string nodes;
  for (const ExtentAddr& fragment : table_->meta().placement.fragments) {
    if (!nodes.empty()) nodes += ", ";
    nodes += store_->client()->node_address(fragment.start.node);
  }
  return Status::Unavailable("table " + std::to_string(table_->id()) +
                             ": every node that holds a copy is lost: " + nodes);
}

void PointLookup::SetCandidates(int count) {
  candidate_ = 0;
  candidate_count_ = count;
  if (count == kTooManyCandidates) [[unlikely]] {
    candidate_count_ = 0;
    outcome_ = Outcome::kSearch;
  }
}

PointLookup::Outcome PointLookup::Fail(Status status) {
  status_ = std::move(status);
  return outcome_ = Outcome::kFailed;
}

PointLookup::Outcome PointLookup::TryAnotherCopy(Status failure) {
  ++copy_;
  failure_ = std::move(failure);
  memnode::PointRead retry;
  return Next(&retry) ? Outcome::kContinue : outcome_;
}

PointLookup::Outcome PointLookup::Consume(const memnode::PointRead& read, Record* record) {
  if (!read.status.ok()) [[unlikely]]
    return TryAnotherCopy(read.status);
  if (candidate_ >= candidate_count_) {
    FinishRead();
    SetCandidates(PointIndex::LookupBucket(*shape_, read.data, bucket_is_home_, hash_, candidates_,
                                           &bucket_));
    bucket_is_home_ = false;
    return outcome_;
  }
  switch (table_->reader().MatchRecord(Slice(read.data, read.length), key_, snapshot_,
                                       verify_checksums_, record)) {
    case TableReader::Match::kNo:
      FinishRead();
      ++candidate_;
      return Outcome::kContinue;
    case TableReader::Match::kYes:
      return outcome_ = Outcome::kFound;
    case TableReader::Match::kOlder:
      return outcome_ = Outcome::kSearch;
    case TableReader::Match::kTruncated:
    case TableReader::Match::kCorrupt:
      break;
  }
  return TryAnotherCopy(Status::Corruption("table " + std::to_string(table_->id()) + " at offset " +
                                           std::to_string(candidates_[candidate_].offset) +
                                           ": the record is damaged"));
}

}  // namespace nacre
