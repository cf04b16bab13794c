#include "db/read/point_lookup.h"

#include <algorithm>
#include <string>
#include <utility>

#include "pool/connect/pool_pace.h"
#include "pool/read/point_reader.h"
#include "util/memory/prefetch.h"
#include "util/perf_step.h"

namespace nacre {

void PointLookup::Start(const Version* version, const pool::TableStore* store, const Slice& key,
                        uint64_t hash, SequenceNumber snapshot, bool verify_checksums) {
  version_ = version;
  store_ = store;
  key_ = key;
  hash_ = hash;
  snapshot_ = snapshot;
  cover_ = 0;
  verify_checksums_ = verify_checksums;
  table_ = nullptr;
  level0_next_ = 0;
  level_next_ = 1;
  candidate_ = candidate_count_ = 0;
  bucket_ = PointIndex::kNoBucket;
  unproved_ = false;
  suspect_ = nullptr;
  load_.possible = true;
  source_ = {};
  failure_ = Status::OK();
  outcome_ = Outcome::kContinue;
  status_ = Status::OK();
  FindTables();
}

void PointLookup::FindTables() {
  table_next_ = table_count_ = 0;
  const bool has_range_deletions = version_->has_range_deletions();
  bool ended = false;  // All in further tables is older than a tombstone that covers the key.
  const auto take = [&, this](const TableHandle* table) {
    if (const PointTier* tier = table->tier(); tier != nullptr) [[likely]]
      tier->Prefetch(hash_);
    tables_[table_count_++] = table;
    if (has_range_deletions && table->meta().has_range_deletions()) [[unlikely]] {
      ended = !TakeCover(table) || cover_ > 0;
    }
  };
  const TableList& level0 = version_->level0();
  for (; level0_next_ < level0.size() && table_count_ < kTables && !ended; ++level0_next_) {
    if (version_->Level0Holds(level0_next_, key_)) take(level0[level0_next_].get());
  }
  for (; level_next_ < version_->depth() && table_count_ < kTables && !ended; ++level_next_) {
    const TableHandle* table = version_->sorted_level(level_next_).Find(key_);
    if (table != nullptr) take(table);
  }
  if (ended) [[unlikely]] {
    level0_next_ = level0.size();
    level_next_ = version_->depth();
  }
}

bool PointLookup::TakeCover(const TableHandle* table) {
  const RangeTombstones* const tombstones = table->reader().range_tombstones();
  if (tombstones == nullptr) {
    table_ = table;
    outcome_ = Outcome::kUnloaded;
    return false;
  }
  cover_ = tombstones->Covering(key_, snapshot_);
  return true;
}

PointLookup::Outcome PointLookup::Found(Record* record) {
  if (TagSequence(record->tag) < cover_) [[unlikely]] {
    record->tag = PackTag(cover_, ValueType::kDeletion);
    record->value = Slice();
  }
  return outcome_ = Outcome::kFound;
}

bool PointLookup::NextTable() {
  if (table_next_ == table_count_) {
    if (table_count_ < kTables) return false;  // There were no more than these.
    FindTables();
    if (table_count_ == 0) return false;
  }
  table_ = tables_[table_next_++];
  return true;
}

bool PointLookup::Next(pool::PointRead* read) {
  while (outcome_ == Outcome::kContinue) {
    uint64_t offset = 0;
    if (candidate_ < candidate_count_) {
      offset = candidates_[candidate_].offset;
      read->length = candidates_[candidate_].length;
    } else if (bucket_ != PointIndex::kNoBucket) {
      offset = table_->meta().point_index.offset + bucket_ * kPointIndexBucketBytes;
      read->length = kPointIndexBucketBytes;
      bucket_offsets_[bucket_is_home_ ? 0 : 1] = offset;
      buckets_ = bucket_is_home_ ? 1 : 2;
    } else if (unproved_) {
      const auto interval = table_->reader().IntervalOf(key_, snapshot_);
      if (!interval.has_value() || interval->end - interval->begin > kIntervalBytesMax) {
        outcome_ = Outcome::kSearch;
        return false;
      }
      interval_ = *interval;
      offset = interval_.begin;
      read->length = static_cast<uint32_t>(interval_.end - interval_.begin);
    } else {
      if (!NextTable()) return false;
      const PointTier* tier = table_->tier();
      if (tier == nullptr) [[unlikely]] {
        outcome_ = Outcome::kUnloaded;
        return false;
      }
      if (tier->kind() == PointTier::Kind::kIndex) {
        SetCandidates(tier->index().Lookup(hash_, candidates_));
        if (candidate_count_ > 0) table_->NoteLookup();
      } else if (tier->MayContain(hash_)) {
        table_->NoteLookup();
        const TableMeta& meta = table_->meta();
        unproved_ = Verifies();
        buckets_ = 0;
        if (!unproved_ || meta.entries == meta.user_keys) {
          shape_ = tier->shape();
          bucket_ = shape_.HomeBucket(hash_);
          bucket_is_home_ = true;
        }
      }
      continue;
    }
    if (FindLoad(offset, read->length)) [[likely]]
      return true;
    const Placement& placement = table_->meta().placement;
    if (table_->meta().sealed()) {
      if (NextFetch(offset, /*turn=*/0, read)) return true;
      continue;
    }
    if (placement.redundancy.striped()) {
      if (NextOfStriped(placement, offset, read)) return true;
      continue;
    }
    if (NextCopy(placement, offset, read)) [[likely]]
      return true;
    Fail(failure_.ok() ? AllCopiesLost() : std::move(failure_));
  }
  return false;
}

/// Whether the bytes lie in memory that can be loaded: the processor is asked for them then.
bool PointLookup::FindLoad(uint64_t offset, uint32_t length) {
  load_.memory = nullptr;
  if (!load_.possible) [[unlikely]]
    return false;
  const LoadableBytes there = table_->reader().extent()->Loadable(offset);
  if (there.data == nullptr) return false;
  load_.bytes = there.From(offset, length);
  if (ReadsInterval() && load_.bytes.size() < length) return false;
  load_.memory = there.memory;
  PrefetchBeginning(load_.bytes.data(), load_.bytes.size());
  return true;
}

bool PointLookup::NextCopy(const Placement& placement, uint64_t offset, pool::PointRead* read) {
  const int copies = static_cast<int>(placement.fragments.size());
  if (source_.untouched()) {
    source_.first = store_->FirstCopy(placement, offset);
    if (copies == 1) source_.patience = 0;
  }
  while (true) {
    for (; source_.turn < 2 * copies; ++source_.turn) {
      const int copy = source_.copy(copies);
      if (source_.asked.test(static_cast<size_t>(copy))) continue;
      read->from = store_->Resolve(placement, offset, copy, /*only_prompt=*/source_.turn < copies);
      read->patience = source_.patience;
      if (read->from.valid()) [[likely]]
        return true;
    }
    if (source_.patience == 0) return false;
    // Where none was late, more patience changes nothing.
    source_.patience = source_.late ? pool::PoolPace::MorePatience(source_.patience) : 0;
    source_.turn = 0;
    source_.asked.reset();
    source_.late = false;
  }
}

bool PointLookup::NextOfStriped(const Placement& placement, uint64_t offset,
                                pool::PointRead* read) {
  // What lies behind the chunk here is not what follows it in the table.
  const uint64_t left = placement.chunk_size - offset % placement.chunk_size;
  const bool in_pieces = ReadsInterval() && read->length > left;
  if (!in_pieces) read->length = static_cast<uint32_t>(std::min<uint64_t>(read->length, left));
  if (source_.turn == 0 && !in_pieces) {
    read->from = store_->Resolve(placement, offset, 0, /*only_prompt=*/true);
    read->patience = 1;
    if (read->from.valid()) [[likely]]
      return true;
    source_.turn = 1;
  }
  return NextFetch(offset, /*turn=*/1, read);
}

bool PointLookup::NextFetch(uint64_t offset, int turn, pool::PointRead* read) {
  // The extent has turned to all nodes that there are.
  if (source_.turn > turn) {
    Fail(std::move(failure_));
    return false;
  }
  read->from = {};
  fetch_.offset = offset;
  return true;
}

std::span<pool::PointRead> PointLookup::StartFetch(const pool::PointRead& read, size_t most) {
  if (table_->meta().sealed()) {
    fetch_.read = table_->reader().extent()->StartRead(fetch_.offset, read.length);
    return {};
  }
  table_->NoteDegradedRead();
  if (fetch_.degraded == nullptr) fetch_.degraded = std::make_unique<pool::DegradedRead>();
  const TableMeta& meta = table_->meta();
  if (fetch_.degraded->Plan(*store_, meta.placement, meta.size, fetch_.offset, read.length) &&
      fetch_.degraded->reads().size() <= most) {
    return fetch_.degraded->reads();
  }
  fetch_.read = table_->reader().extent()->StartRead(fetch_.offset, read.length);
  return {};
}

void PointLookup::Fetch(std::span<const pool::PointRead> parts, pool::PointRead* read) {
  if (!parts.empty()) {
    read->data = fetch_.degraded->Complete(parts);
    read->status = Status::OK();
    if (read->data != nullptr) return;
    // Another node has failed.
    fetch_.read = table_->reader().extent()->StartRead(fetch_.offset, read->length);
  }
  Slice bytes;
  read->status = fetch_.read->Await(&bytes);
  read->data = bytes.data();
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
  const Placement& placement = table_->meta().placement;
  if (!placement.redundancy.striped()) {
    const int copies = static_cast<int>(placement.fragments.size());
    source_.asked.set(static_cast<size_t>(source_.copy(copies)));
  }
  source_.late = source_.late || failure.IsTimedOut();
  ++source_.turn;
  failure_ = std::move(failure);
  pool::PointRead retry;
  return Next(&retry) ? Outcome::kContinue : outcome_;
}

PointLookup::Outcome PointLookup::Consume(const pool::PointRead& read, Record* record) {
  if (!read.status.ok()) [[unlikely]]
    return TryAnotherCopy(read.status);
  if (ReadsInterval()) return SearchInterval(Slice(read.data, read.length), record);
  if (candidate_ >= candidate_count_) {
    FinishRead();
    SetCandidates(
        PointIndex::LookupBucket(shape_, read.data, bucket_is_home_, hash_, candidates_, &bucket_));
    bucket_is_home_ = false;
    return outcome_;
  }
  return Judge(
      table_->reader().MatchRecord(candidates_[candidate_].offset, Slice(read.data, read.length),
                                   key_, snapshot_, Verifies(), record),
      record);
}

PointLookup::Outcome PointLookup::Load(PinnableSlice* value, Record* record) {
  CountPerf(&PerfContext::remote_read_count);
  CountPerf(&PerfContext::remote_read_bytes, load_.bytes.size());
  const PerfTimer timer(&PerfContext::remote_read_wait_nanos);
  if (candidate_ < candidate_count_) [[likely]] {
    const TableReader::Match match =
        table_->reader().LoadRecord(candidates_[candidate_].offset, load_.bytes, key_, snapshot_,
                                    verify_checksums_, value, &load_.copy, record);
    load_.possible = load_.memory->Valid();
    return load_.possible ? Judge(match, record) : outcome_;
  }
  load_.copy = std::make_unique_for_overwrite<char[]>(load_.bytes.size());
  LoadableMemory::Copy(load_.copy.get(), load_.bytes.data(), load_.bytes.size());
  load_.possible = load_.memory->Valid();
  if (!load_.possible) return outcome_;
  return Consume({.from = {},
                  .length = static_cast<uint32_t>(load_.bytes.size()),
                  .data = load_.copy.get(),
                  .status = {}},
                 record);
}

PointLookup::Outcome PointLookup::Judge(TableReader::Match match, Record* record) {
  switch (match) {
    case TableReader::Match::kNo:
      FinishRead();
      ++candidate_;
      return Outcome::kContinue;
    case TableReader::Match::kYes:
      return Found(record);
    case TableReader::Match::kOlder:
      return outcome_ = Outcome::kSearch;
    case TableReader::Match::kTruncated:  // Perhaps longer than a chunk, and goes on elsewhere.
    case TableReader::Match::kCorrupt:
      break;
  }
  return outcome_ = Outcome::kSearch;
}

PointLookup::Outcome PointLookup::SearchInterval(const Slice& bytes, Record* record) {
  FinishRead();
  unproved_ = false;
  switch (table_->reader().SearchInterval(interval_, bytes, key_, snapshot_, record)) {
    case TableReader::Match::kNo:
      return Outcome::kContinue;
    case TableReader::Match::kYes:
      if (buckets_ > 0) suspect_ = table_;
      return Found(record);
    default:
      return outcome_ = Outcome::kSearch;
  }
}

void PointLookup::FindDamage() const {
  if (suspect_ == nullptr) return;
  Extent* const extent = suspect_->reader().extent();
  for (int i = 0; i < buckets_; ++i) {
    extent->FindDamage(bucket_offsets_[i], kPointIndexBucketBytes, /*again=*/false);
  }
}

}  // namespace nacre
