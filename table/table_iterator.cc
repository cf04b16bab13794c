#include "table/table_iterator.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace nacre {

TableIterator::TableIterator(const TableContext* table, RangeIndexRef range_index,
                             const TableIteratorOptions& options)
    : table_(table),
      range_index_ref_(std::move(range_index)),
      range_index_(range_index_ref_->index),
      records_bytes_(table->meta->records.length),
      chunk_size_(table->meta->chunk_size),
      alignment_mask_((uint64_t{1} << table->meta->alignment_shift) - 1),
      verify_checksums_(options.verify_checksums),
      windows_(table, &range_index_, options) {}

// ---- Forward ----------------------------------------------------------------------------------

void TableIterator::SeekToFirst() {
  EndScan();
  status_ = Status::OK();
  windows_.Jump(0);
  available_until_ = 0;
  MoveForwardTo(0);
}

void TableIterator::PrepareSeek(const Slice& internal_key, const Slice* upper_bound) {
  EndScan();
  const RecordInterval interval =
      range_index_.Seek(ExtractUserKey(internal_key), ExtractTag(internal_key));
  if (!windows_.Has(interval)) {
    windows_.StartScan(interval, upper_bound == nullptr
                                     ? records_bytes_
                                     : range_index_.Seek(*upper_bound, kGreatestTag).end);
  }
  prepared_ = interval;
}

void TableIterator::Seek(const Slice& internal_key) {
  if (!prepared_.has_value()) PrepareSeek(internal_key, nullptr);
  const RecordInterval interval = *prepared_;
  SeekIn(interval, internal_key);
  if (valid_ && windows_.fetched()) scanned_from_ = interval.end;
}

/// A scan that began with a Seek is over: lets the next one know of its length.
void TableIterator::EndScan() {
  prepared_.reset();
  if (scanned_from_ == kNoScan) return;
  table_->scan_length.Note(std::max(next_offset_, scanned_from_) - scanned_from_);
  scanned_from_ = kNoScan;
}

/// `interval` is that of the range index for the key.
void TableIterator::SeekIn(const RecordInterval& interval, const Slice& internal_key) {
  prepared_.reset();
  status_ = Status::OK();
  const Slice user_key = ExtractUserKey(internal_key);
  const uint64_t tag = ExtractTag(internal_key);
  if (Status loaded = windows_.Load(interval); !loaded.ok()) {
    Fail(std::move(loaded));
    return;
  }
  windows_.Prefetch(interval.begin, interval.end);
  available_until_ = 0;
  for (MoveForwardTo(interval.begin); valid_; MoveForwardTo(next_offset_)) {
    const int r = table_->comparator.CompareUserKeys(record_.user_key, user_key);
    if (r > 0 || (r == 0 && record_.tag <= tag)) break;
  }
}

void TableIterator::Next() {
  assert(valid_);
  if (backward_) available_until_ = 0;
  MoveForwardTo(next_offset_);
}

/// Moves to the first record at or behind `offset`, where a record, a mark or the end of a chunk
/// is.
void TableIterator::MoveForwardTo(uint64_t offset) {
  backward_ = false;
  for (;;) {
    if (offset + kEndOfChunkMarkBytes > available_until_ && !MakeAvailable(&offset)) [[unlikely]]
      return;
    const RecordParse parse = ParseAt(offset);
    if (parse == RecordParse::kOk) [[likely]] {
      valid_ = true;
      return;
    }
    if (parse != RecordParse::kEndOfChunk) {
      if (!ReadAgain(offset, parse)) return;
      continue;
    }
    offset = (offset / chunk_size_ + 1) * chunk_size_;
  }
}

/// What begins at `offset` is damaged in the window, or counts no more. True if it is whole in the
/// next one.
bool TableIterator::ReadAgain(uint64_t offset, RecordParse parse) {
  const RecordInterval interval = range_index_.Containing(offset);
  DamagedRead damage;
  while (windows_.memory() != nullptr ||
         damage.ReadAgain(table_->extent, interval.begin, interval.end - interval.begin)) {
    if (Status loaded = windows_.Reload(interval); !loaded.ok()) return Fail(std::move(loaded));
    available_until_ = 0;
    parse = ParseRecord(BytesAt(offset), table_->seed.At(offset), true, &record_);
    if (parse == RecordParse::kOk || parse == RecordParse::kEndOfChunk) return true;
  }
  return FailAt(offset, parse, damage.nodes());
}

/// Moves `*offset` past the end of a chunk and makes the bytes there available. False at the end
/// of the table and on failure.
bool TableIterator::MakeAvailable(uint64_t* offset) {
  for (;;) {
    if (*offset >= records_bytes_) {
      valid_ = false;
      return false;
    }
    const uint64_t chunk_end = (*offset / chunk_size_ + 1) * chunk_size_;
    if (chunk_end - *offset < kEndOfChunkMarkBytes) {
      *offset = chunk_end;
      continue;
    }
    while (*offset >= windows_.end()) {
      if (Status next = windows_.Next(); !next.ok()) return Fail(std::move(next));
    }
    available_until_ = std::min({chunk_end, windows_.end(), records_bytes_});
    if (*offset + kEndOfChunkMarkBytes <= available_until_) return true;
    return FailAt(*offset, RecordParse::kTruncated);
  }
}

// ---- Backward ---------------------------------------------------------------------------------

void TableIterator::SeekToLast() {
  EndScan();
  status_ = Status::OK();
  windows_.Jump(records_bytes_);
  MoveBackTo(range_index_.Containing(records_bytes_ - 1), records_bytes_);
}

void TableIterator::SeekForPrev(const Slice& internal_key) {
  EndScan();
  SeekIn(range_index_.Seek(ExtractUserKey(internal_key), ExtractTag(internal_key)), internal_key);
  if (!valid_) {
    if (status_.ok()) SeekToLast();
    return;
  }
  const bool exact =
      record_.tag == ExtractTag(internal_key) && record_.user_key == ExtractUserKey(internal_key);
  if (!exact) Prev();
}

void TableIterator::Prev() {
  assert(valid_);
  EndScan();
  if (!backward_) {
    // Windows are whole intervals, so this one is at hand.
    MoveBackTo(range_index_.Containing(offset_), offset_);
  } else if (before_ > 0) {
    TakeLastListed(offset_);
  } else {
    MoveBackTo({list_begin_, list_begin_}, list_begin_);
  }
}

/// Moves to the last record before `limit`, which is in `interval` or at its beginning.
bool TableIterator::MoveBackTo(const RecordInterval& interval, uint64_t limit) {
  backward_ = true;
  RecordInterval from = interval;
  for (;;) {
    if (from.begin == limit) {
      if (limit == 0) return valid_ = false;
      from = IntervalBefore(limit);
    }
    if (Status loaded = windows_.LoadBack({from.begin, limit}); !loaded.ok()) {
      return Fail(std::move(loaded));
    }
    // The interval before this one, which will be as long or about so, is next.
    const uint64_t length = limit - from.begin;
    windows_.Prefetch(from.begin < length ? 0 : from.begin - length, from.begin);
    // Only lengths are needed; each record is checked when the iterator comes to it.
    uint64_t fault = 0;
    const RecordParse parse = ListRecords(from.begin, limit, false, &fault);
    if (parse != RecordParse::kOk && !ListAgain(from.begin, limit, fault, parse)) return false;
    if (before_ > 0) return TakeLastListed(limit);
    limit = from.begin;
  }
}

/// Moves to the last listed record. All from `limit` on have been visited.
bool TableIterator::TakeLastListed(uint64_t limit) {
  if (RecordParse parse = ParseAt(list_[before_ - 1]); parse != RecordParse::kOk) {
    // Its length, or that of another before it, may have hidden those that follow it.
    if (!ListAgain(list_begin_, limit, list_[before_ - 1], parse)) return false;
    if (before_ == 0) return MoveBackTo({list_begin_, list_begin_}, list_begin_);
    parse = ParseAt(list_[before_ - 1]);
    if (parse != RecordParse::kOk) return FailAt(list_[before_ - 1], parse);
  }
  --before_;
  return valid_ = true;
}

/// The interval that ends at `limit`, mostly without a search.
RecordInterval TableIterator::IntervalBefore(uint64_t limit) {
  if (boundaries_.size() < 2 || boundaries_.back() != limit) {
    range_index_.BoundariesUpTo(limit, &boundaries_);
  }
  boundaries_.pop_back();
  return {boundaries_.back(), limit};
}

/// Lists the records that start in [begin, end), which is in the window. kOk, or what is wrong with
/// the one at `*fault`.
RecordParse TableIterator::ListRecords(uint64_t begin, uint64_t end, bool verify, uint64_t* fault) {
  list_.clear();
  list_begin_ = begin;
  uint64_t chunk_end = (begin / chunk_size_ + 1) * chunk_size_;
  for (uint64_t offset = begin; offset < end;) {
    if (offset >= chunk_end) chunk_end = (offset / chunk_size_ + 1) * chunk_size_;
    if (chunk_end - offset < kEndOfChunkMarkBytes) {
      offset = chunk_end;
      continue;
    }
    size_t encoded_bytes = 0;
    const RecordParse parse = ParseLengthAt(offset, verify, &encoded_bytes);
    if (parse == RecordParse::kEndOfChunk) {
      offset = chunk_end;
      continue;
    }
    if (parse != RecordParse::kOk) {
      *fault = offset;
      return parse;
    }
    list_.push_back(offset);
    offset = (offset + encoded_bytes + alignment_mask_) & ~alignment_mask_;
  }
  before_ = list_.size();
  if (windows_.memory() == nullptr || windows_.memory()->Valid()) return RecordParse::kOk;
  *fault = begin;
  return RecordParse::kCorrupt;
}

/// What begins in [begin, end) is damaged in the window, at `fault`, or counts no more. Lists it
/// once it is whole in another one.
bool TableIterator::ListAgain(uint64_t begin, uint64_t end, uint64_t fault, RecordParse parse) {
  const RecordInterval interval = range_index_.Containing(begin);
  DamagedRead damage;
  while (windows_.memory() != nullptr ||
         damage.ReadAgain(table_->extent, interval.begin, interval.end - interval.begin)) {
    if (Status loaded = windows_.Reload(interval); !loaded.ok()) return Fail(std::move(loaded));
    parse = ListRecords(begin, end, true, &fault);
    if (parse == RecordParse::kOk) return true;
  }
  return FailAt(fault, parse, damage.nodes());
}

/// Makes the record at `offset`, which is in the window, the current one if it is whole.
inline RecordParse TableIterator::ParseAt(uint64_t offset) {
  const Slice bytes = BytesAt(offset);
  const RecordSeed seed = table_->seed.At(offset);
  const LoadableMemory* const memory = windows_.memory();
  const RecordParse parse = memory == nullptr
                                ? ParseRecord(bytes, seed, verify_checksums_, &record_)
                                : loader_.Load(*memory, bytes, seed, verify_checksums_, &record_);
  if (parse != RecordParse::kOk) [[unlikely]]
    return parse;
  offset_ = offset;
  next_offset_ = (offset + record_.encoded_bytes + alignment_mask_) & ~alignment_mask_;
  return parse;
}

/// Only the length of the record at `offset`, and its checksum if that is to be verified; of a
/// window in a node's memory, the length alone.
RecordParse TableIterator::ParseLengthAt(uint64_t offset, bool verify, size_t* encoded_bytes) {
  const RecordSeed seed = table_->seed.At(offset);
  if (windows_.memory() != nullptr) {
    return RecordLoader::LoadLength(BytesAt(offset), seed, encoded_bytes);
  }
  Record record;
  const RecordParse parse = ParseRecord(BytesAt(offset), seed, verify, &record);
  *encoded_bytes = record.encoded_bytes;
  return parse;
}

// ---- Failure ----------------------------------------------------------------------------------

bool TableIterator::Fail(Status status) {
  status_ = std::move(status);
  return valid_ = false;
}

bool TableIterator::FailAt(uint64_t offset, RecordParse parse, const std::string& nodes) {
  return Fail(table_->CorruptionAt(offset,
                                   parse == RecordParse::kTruncated
                                       ? "record reaches beyond its place"
                                       : "record does not match its checksum",
                                   nodes));
}

}  // namespace nacre
