#include "table/record_windows.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace nacre {

RecordWindows::RecordWindows(const TableContext* table, const RangeIndex* range_index,
                             const TableIteratorOptions& options)
    : table_(table),
      range_index_(range_index),
      options_(options),
      readahead_(options.readahead_initial),
      scan_end_(table->meta->records.length) {
  if (table->in_place != nullptr) {
    current_.data = table->in_place;
    current_.end = table->meta->records.length;
  } else {
    ahead_.reserve(static_cast<size_t>(options.reads_in_flight));
  }
}

bool RecordWindows::IsAtHand(const RecordInterval& interval) {
  PrefetchInPlace(interval.begin, interval.end);
  if (Holds(current_, interval) ||
      std::any_of(ahead_.begin(), ahead_.end(),
                  [&](const Window& window) { return Holds(window, interval); })) {
    return true;
  }
  if (!ahead_.empty()) return false;
  source_ = table_->extent->Loadable(interval.begin);
  if (source_.data == nullptr) return false;
  const uint64_t end = std::min({interval.end, source_.end, interval.begin + kPrefetchBytesMax});
  for (uint64_t at = interval.begin; at < end; at += kCacheLineBytes) Ask(at);
  return true;
}

void RecordWindows::StartScan(const RecordInterval& interval, uint64_t scan_end) {
  Abandon();
  direction_ = Direction::kForward;
  scan_end_ = std::max(scan_end, interval.end);
  const uint64_t expected = table_->scan_length.Expected();
  // Scans that end with their first interval reach the next one now and then.
  const uint64_t length = interval.end - interval.begin;
  const uint64_t first = expected < length / 2
                             ? 0
                             : length + std::min<uint64_t>(expected, options_.readahead_parallel);
  ahead_.push_back(Start(first == 0 ? interval : WholeIntervals(interval.begin, first)));
  if (expected < options_.readahead_parallel) return;
  // The first records of a long scan come sooner by a read of their own.
  readahead_ = std::max(readahead_, options_.readahead_parallel);
  StartAhead();
}

Status RecordWindows::Load(const RecordInterval& interval) {
  back_bytes_ = kBackBytesFirst;
  scan_begin_ = interval.begin;
  if (Holds(current_, interval)) return Status::OK();
  for (size_t i = 0; i < ahead_.size(); ++i) {
    if (Holds(ahead_[i], interval)) return Take(i);
  }
  if (CopyForward(interval.begin, interval.end - interval.begin)) return Status::OK();
  return Reload(interval);
}

Status RecordWindows::Reload(const RecordInterval& interval) {
  Abandon();
  ahead_.push_back(Start(interval));
  return Take(0);
}

void RecordWindows::Jump(uint64_t offset) {
  back_bytes_ = kBackBytesFirst;
  scan_begin_ = offset;
  if (current_.begin <= offset && offset <= current_.end && current_.begin < current_.end) return;
  Abandon();
  current_ = Window{.begin = offset, .end = offset};
}

Status RecordWindows::LoadBack(const RecordInterval& interval) {
  // The interval before this one, which will be as long or about so, is next.
  const uint64_t length = interval.end - interval.begin;
  PrefetchInPlace(interval.begin - std::min(interval.begin, length), interval.begin);
  if (Holds(current_, interval) || CopyBack(interval)) return Status::OK();
  // The window may begin inside the interval where memory could be loaded until now.
  if (current_.begin != interval.end) {
    Abandon();
    current_ = Window{.begin = interval.end, .end = interval.end};
  }
  while (interval.begin < current_.begin) NACRE_RETURN_IF_ERROR(Previous());
  return Status::OK();
}

/// Asks for bytes of a table in place that will be needed soon: what the hardware does not foresee,
/// a jump or a walk backwards.
void RecordWindows::PrefetchInPlace(uint64_t begin, uint64_t end) const {
  if (table_->in_place == nullptr) return;
  end = std::min(end, begin + kPrefetchBytesMax);
  if (begin < end) PrefetchLines(table_->in_place + begin, end - begin);
}

/// Makes a copy of [begin, end) of source_ the window at hand. False, and the window is as before
/// but for its bytes, if they do not count.
bool RecordWindows::Copy(uint64_t begin, uint64_t end) {
  const size_t length = end - begin;
  if (length > capacity_) {
    current_ = Window{.begin = begin, .end = begin};  // It may have been the copy.
    capacity_ = std::bit_ceil(length);
    copy_ = std::make_unique_for_overwrite<char[]>(capacity_);
  }
  LoadableMemory::Copy(copy_.get(), source_.data + (begin - source_.begin), length);
  const bool counts = source_.memory->Valid();
  current_ =
      Window{.data = copy_.get(), .begin = begin, .end = counts ? end : begin, .copied = true};
  return counts;
}
/// Makes a copy of about so many bytes from `offset` on the window at hand, if they lie in memory
/// that can be loaded. Reads under way go on to be used.
bool RecordWindows::CopyForward(uint64_t offset, uint64_t bytes) {
  if (!ahead_.empty()) return false;
  source_ = table_->extent->Loadable(offset);
  if (source_.data == nullptr) return false;
  source_.end = std::min(source_.end, table_->meta->records.length);
  const uint64_t end = std::min(offset + bytes, source_.end);
  if (asked_until_ < end || asked_until_ > end + kAheadBytesMax) asked_until_ = end;
  return Copy(offset, end);
}

bool RecordWindows::CopyFrom(uint64_t offset, uint64_t bytes) {
  assert(current_.copied && current_.begin <= offset && offset <= current_.end);
  // A damaged length ends with its interval.
  if (bytes > kForwardBytes) {
    bytes = std::min(bytes, range_index_->Containing(offset).end - offset);
  }
  const uint64_t had = current_.end - offset;
  const uint64_t wanted = std::max(bytes, kForwardBytes);
  if (wanted <= had || current_.end == source_.end) return false;
  return CopyForward(offset, wanted) && current_.end - offset > had;
}

/// Makes a copy of the interval and of some before it the window at hand, if they lie in memory
/// that can be loaded.
bool RecordWindows::CopyBack(const RecordInterval& interval) {
  if (!ahead_.empty()) return false;
  source_ = table_->extent->Loadable(interval.begin);
  // An interval that straddles two chunks lies in two places.
  if (source_.data == nullptr || source_.end < interval.end) return false;
  const uint64_t earliest =
      std::max(source_.begin, interval.end - std::min(interval.end, back_bytes_));
  back_bytes_ = std::min(2 * back_bytes_, kBackBytesMax);
  const RecordInterval first = range_index_->Containing(std::min(earliest, interval.begin));
  const uint64_t begin = first.begin < source_.begin ? first.end : first.begin;
  scan_begin_ = begin;
  asked_until_ = begin - std::min(begin - source_.begin, interval.end - begin);
  return Copy(begin, interval.end);
}

Status RecordWindows::MoveTo(uint64_t offset) {
  while (offset >= current_.end) {
    assert(current_.end < table_->meta->records.length);
    TurnTo(Direction::kForward);
    if (CopyForward(offset, kForwardBytes)) break;
    if (current_.end >= scan_end_)
      scan_end_ = table_->meta->records.length;  // It goes on after all.
    NACRE_RETURN_IF_ERROR(TakeNext());
  }
  return Status::OK();
}

/// Makes the window that ends at begin(), which is not 0, the one at hand.
Status RecordWindows::Previous() {
  assert(current_.begin > 0);
  TurnTo(Direction::kBackward);
  return TakeNext();
}

/// While what was waited for is used, as many reads are under way as the scan has shown to need.
Status RecordWindows::TakeNext() {
  const bool was_long = IsLong();
  StartAhead();
  NACRE_RETURN_IF_ERROR(Take(0));
  if (was_long) StartAhead();
  return Status::OK();
}

/// Forgets the reads under way and starts small again.
void RecordWindows::Abandon() {
  ahead_.clear();
  readahead_ = options_.readahead_initial;
  scan_end_ = table_->meta->records.length;
}

void RecordWindows::TurnTo(Direction direction) {
  if (direction_ == direction) return;
  Abandon();
  direction_ = direction;
}

/// Keeps reads_in_flight reads under way, once the scan has shown to be a long one.
void RecordWindows::StartAhead() {
  const int in_flight = IsLong() ? std::max(options_.reads_in_flight, 1) : 1;
  while (ahead_.size() < static_cast<size_t>(in_flight)) {
    const RecordInterval range = direction_ == Direction::kForward ? NextRange() : PreviousRange();
    if (range.begin == range.end) return;
    ahead_.push_back(Start(range));
    readahead_ = std::min(2 * readahead_, std::max(options_.readahead_max, readahead_));
  }
}

/// What follows what is at hand or under way, up to scan_end_: nothing if that is behind it.
RecordInterval RecordWindows::NextRange() const {
  const uint64_t begin = ahead_.empty() ? current_.end : ahead_.back().end;
  if (begin >= scan_end_) return {begin, begin};
  return WholeIntervals(begin, readahead_);
}

/// Whole intervals from `begin` on, about `bytes` up to scan_end_; a record much larger than that
/// gets a read of its own.
RecordInterval RecordWindows::WholeIntervals(uint64_t begin, uint64_t bytes) const {
  if (scan_end_ - begin <= bytes) return {begin, scan_end_};
  const RecordInterval last = range_index_->Containing(begin + bytes - 1);
  const bool too_long = last.end - begin > 2 * bytes;
  return {begin, too_long && last.begin > begin ? last.begin : last.end};
}

RecordInterval RecordWindows::PreviousRange() const {
  const uint64_t end = ahead_.empty() ? current_.begin : ahead_.back().begin;
  if (end <= readahead_) return {0, end};
  const RecordInterval first = range_index_->Containing(end - readahead_);
  const bool too_long = end - first.begin > 2 * readahead_;
  return {too_long && first.end < end ? first.end : first.begin, end};
}

/// The first of those under way is needed first: it is not left to another thread.
RecordWindows::Window RecordWindows::Start(const RecordInterval& range) {
  const uint64_t length = range.end - range.begin;
  return {.begin = range.begin,
          .end = range.end,
          .read = ahead_.empty() || !options_.hand_over_reads || !IsLong()
                      ? table_->extent->StartRead(range.begin, length)
                      : table_->extent->StartReadAhead(range.begin, length)};
}

/// Waits for ahead_[i], makes it the window at hand and forgets those before it.
Status RecordWindows::Take(size_t i) {
  Window window = std::move(ahead_[i]);
  ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  // The old window's buffer is given back first: it may be the one that the transport waits for.
  current_ = Window{.begin = window.begin, .end = window.begin};
  Slice bytes;
  Status status = window.read->Await(&bytes);
  if (status.ok() && bytes.size() != window.end - window.begin) {
    status = table_->CorruptionAt(window.begin, "read came back short");
  }
  if (!status.ok()) {
    Abandon();
    return status;
  }
  window.data = bytes.data();
  current_ = std::move(window);
  return Status::OK();
}

}  // namespace nacre
