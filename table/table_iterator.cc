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
      chunk_size_(table->meta->plain_chunk_size()),
      alignment_mask_((uint64_t{1} << table->meta->alignment_shift) - 1),
      verify_checksums_(options.verify_checksums || table->meta->sealed()),
      windows_(table, &range_index_, options) {}

/// Begins a run of what lies at `offset` and behind it.
void TableIterator::StartRun(uint64_t offset) {
  entries_.clear();
  offsets_.clear();
  next_offset_ = offset;
}

inline void TableIterator::Append(uint64_t offset, const Record& record) {
  entries_.push_back({record.user_key, record.tag, record.value});
  offsets_.push_back(offset);
  next_offset_ = (offset + record.encoded_bytes + alignment_mask_) & ~alignment_mask_;
}

// ---- Forward ----------------------------------------------------------------------------------

void TableIterator::SeekToFirst() {
  EndScan();
  status_ = Status::OK();
  windows_.Jump(0);
  available_until_ = 0;
  passed_ = 0;
  StartRun(0);
  NextRun();
}

void TableIterator::PrepareSeek(const Slice& internal_key, const Slice* upper_bound) {
  EndScan();
  const RecordInterval interval =
      range_index_.Seek(ExtractUserKey(internal_key), ExtractTag(internal_key));
  if (!windows_.IsAtHand(interval)) {
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
  if (Valid() && windows_.fetched()) scanned_from_ = interval.end;
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
  available_until_ = 0;
  passed_ = 0;
  for (StartRun(interval.begin);;) {
    if (!AppendNext()) {
      if (entries_.empty()) return ShowNothing();
      StartRun(next_offset_);
      continue;
    }
    const InternalEntry& entry = entries_.back();
    const int r = table_->comparator.CompareUserKeys(entry.user_key, user_key);
    if (r > 0 || (r == 0 && entry.tag <= tag)) break;
  }
  const InternalEntry* const begin = entries_.data();
  ShowRun(begin, begin + entries_.size() - 1, begin + entries_.size());
}

void TableIterator::NextRun() {
  const size_t count = std::clamp<size_t>(passed_ / kPassedForEach, 1, kRunMax);
  StartRun(next_offset_);
  size_t parsed = 0;
  while (parsed < count && AppendNext()) ++parsed;
  passed_ += parsed;
  if (entries_.empty()) return ShowNothing();
  ShowRun(entries_.data(), entries_.data(), entries_.data() + entries_.size());
}

/// Appends the next record to the run. False if there is none, if it cannot be had, which
/// `status_` says, or if a run with entries has to end before it.
bool TableIterator::AppendNext() {
  // A record, a mark or the end of a chunk is there.
  for (uint64_t offset = next_offset_;;) {
    if (offset + kEndOfChunkMarkBytes > available_until_ &&
        (!entries_.empty() || !MakeAvailable(&offset))) [[unlikely]] {
      return false;
    }
    Record record;
    const RecordParse parse =
        ParseRecord(BytesAt(offset), table_->seed.At(offset), verify_checksums_, &record);
    if (parse == RecordParse::kOk) [[likely]] {
      Append(offset, record);
      windows_.AskAhead(next_offset_);
      return true;
    }
    if (parse == RecordParse::kEndOfChunk) {
      offset = (offset / chunk_size_ + 1) * chunk_size_;
      continue;
    }
    if (!entries_.empty()) return false;
    if (parse == RecordParse::kTruncated && windows_.copied() &&
        windows_.CopyFrom(offset, RecordBytesFromHeader(BytesAt(offset)))) {
      available_until_ = 0;
      continue;
    }
    if (!ReadAgain(offset, parse)) return false;
  }
}

/// What begins at `offset` is damaged in the window, or counts no more. True if it is whole in the
/// next one.
bool TableIterator::ReadAgain(uint64_t offset, RecordParse parse) {
  const RecordInterval interval = range_index_.Containing(offset);
  DamagedRead damage;
  Record record;
  while (windows_.copied() ||
         damage.ReadAgain(table_->extent, interval.begin, interval.end - interval.begin)) {
    if (Status loaded = windows_.Reload(interval); !loaded.ok()) return Fail(std::move(loaded));
    available_until_ = 0;
    parse = ParseRecord(BytesAt(offset), table_->seed.At(offset), true, &record);
    if (parse == RecordParse::kOk || parse == RecordParse::kEndOfChunk) return true;
  }
  return FailAt(offset, parse, damage.nodes());
}

/// Moves `*offset` past the end of a chunk and makes the bytes there available. False at the end
/// of the table and on failure.
bool TableIterator::MakeAvailable(uint64_t* offset) {
  for (;;) {
    if (*offset >= records_bytes_) return false;
    const uint64_t chunk_end = (*offset / chunk_size_ + 1) * chunk_size_;
    if (chunk_end - *offset < kEndOfChunkMarkBytes) {
      *offset = chunk_end;
      continue;
    }
    if (Status moved = windows_.MoveTo(*offset); !moved.ok()) return Fail(std::move(moved));
    const auto is_available = [&] {
      available_until_ = std::min({chunk_end, windows_.end(), records_bytes_});
      return *offset + kEndOfChunkMarkBytes <= available_until_;
    };
    if (is_available()) return true;
    if (!windows_.copied()) return FailAt(*offset, RecordParse::kTruncated);
    if (windows_.CopyFrom(*offset, 0) && is_available()) return true;
    if (!ReadAgain(*offset, RecordParse::kTruncated)) return false;
  }
}

// ---- Backward ---------------------------------------------------------------------------------

void TableIterator::SeekToLast() {
  EndScan();
  status_ = Status::OK();
  windows_.Jump(records_bytes_);
  MoveBackTo(records_bytes_);
}

void TableIterator::SeekForPrev(const Slice& internal_key) {
  EndScan();
  SeekIn(range_index_.Seek(ExtractUserKey(internal_key), ExtractTag(internal_key)), internal_key);
  if (!Valid()) {
    if (status_.ok()) SeekToLast();
    return;
  }
  const bool exact =
      tag() == ExtractTag(internal_key) && user_key() == ExtractUserKey(internal_key);
  if (!exact) Prev();
}

void TableIterator::PrevRun() {
  EndScan();
  MoveBackTo(offsets_.front());
}

/// Moves to the last record before `limit`, where a record begins or all end.
void TableIterator::MoveBackTo(uint64_t limit) {
  available_until_ = 0;
  passed_ = 0;
  for (;;) {
    if (limit == 0) return ShowNothing();
    const RecordInterval interval = IntervalBefore(limit);
    if (Status loaded = windows_.LoadBack(interval); !loaded.ok()) {
      Fail(std::move(loaded));
      return;
    }
    // A copy has several intervals, as a rule; where it is damaged, each is a run of its own.
    uint64_t begin = windows_.copied() ? windows_.begin() : interval.begin;
    uint64_t fault = 0;
    RecordParse parse = ParseBack(begin, limit, /*all=*/false, &fault);
    if (parse != RecordParse::kOk && begin != interval.begin) {
      begin = interval.begin;
      parse = ParseBack(begin, limit, /*all=*/false, &fault);
    }
    if (parse != RecordParse::kOk && !ReadBackAgain(interval, fault, parse)) return;
    if (!entries_.empty()) {
      const InternalEntry* const end = entries_.data() + entries_.size();
      return ShowRun(entries_.data(), end - 1, end);
    }
    limit = begin;
  }
}

/// The interval that ends at `limit`, or what is left of it before `limit`; mostly without a
/// search.
RecordInterval TableIterator::IntervalBefore(uint64_t limit) {
  while (!boundaries_.empty() && boundaries_.back() > limit) boundaries_.pop_back();
  if (boundaries_.size() < 2 || boundaries_.back() != limit) {
    range_index_.BoundariesUpTo(limit, &boundaries_);
  }
  boundaries_.pop_back();
  return {boundaries_.back(), limit};
}

/// Makes the records that start in [begin, end), which is in the window, the run. What is damaged
/// ends it towards the beginning, but its length may still tell where those behind it are, each of
/// which is checked; with `all` it is a fault, too. kOk, or what is wrong at `*fault` that may hide
/// the last records before `end`.
RecordParse TableIterator::ParseBack(uint64_t begin, uint64_t end, bool all, uint64_t* fault) {
  RecordParse last = RecordParse::kOk;
  uint64_t chunk_end = (begin / chunk_size_ + 1) * chunk_size_;
  StartRun(begin);
  for (uint64_t offset = begin; offset < end; offset = next_offset_) {
    if (offset >= chunk_end) chunk_end = (offset / chunk_size_ + 1) * chunk_size_;
    if (chunk_end - offset < kEndOfChunkMarkBytes) {
      next_offset_ = chunk_end;
      continue;
    }
    Record record;
    const RecordSeed seed = table_->seed.At(offset);
    const RecordParse parse = ParseRecord(BytesAt(offset), seed, all || verify_checksums_, &record);
    if (parse == RecordParse::kEndOfChunk) {
      next_offset_ = chunk_end;
      continue;
    }
    if (parse == RecordParse::kOk) [[likely]] {
      Append(offset, record);
      windows_.AskBack(next_offset_);
      last = parse;
      continue;
    }
    *fault = offset;
    if (all || ParseRecord(BytesAt(offset), seed, false, &record) != RecordParse::kOk) return parse;
    Append(offset, record);
    StartRun(next_offset_);
    last = parse;
  }
  return last;
}

/// What begins in the interval is damaged in the window, at `fault`, or counts no more. Makes its
/// records the run once all are whole in another window.
bool TableIterator::ReadBackAgain(const RecordInterval& interval, uint64_t fault,
                                  RecordParse parse) {
  const RecordInterval whole = range_index_.Containing(interval.begin);
  DamagedRead damage;
  while (windows_.copied() ||
         damage.ReadAgain(table_->extent, whole.begin, whole.end - whole.begin)) {
    if (Status loaded = windows_.Reload(whole); !loaded.ok()) return Fail(std::move(loaded));
    parse = ParseBack(interval.begin, interval.end, /*all=*/true, &fault);
    if (parse == RecordParse::kOk) return true;
  }
  return FailAt(fault, parse, damage.nodes());
}

// ---- Failure ----------------------------------------------------------------------------------

bool TableIterator::Fail(Status status) {
  status_ = std::move(status);
  StartRun(next_offset_);
  ShowNothing();
  return false;
}

bool TableIterator::FailAt(uint64_t offset, RecordParse parse, const std::string& nodes) {
  return Fail(table_->CorruptionAt(offset,
                                   parse == RecordParse::kTruncated
                                       ? "record reaches beyond its place"
                                       : "record does not match its checksum",
                                   nodes));
}

}  // namespace nacre
