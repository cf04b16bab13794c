#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "table/format/extent.h"
#include "table/index/range_index.h"
#include "table/table_context.h"
#include "table/table_reader.h"
#include "util/memory/prefetch.h"

namespace nacre {

/// The part of a table's records that an iterator has at hand, and the reads that it has under way
/// for what comes next. A window is made of whole intervals of the range index, so no record
/// straddles two. Of a table in place, all records are one window, until damage is met there.
///
/// Where a node's memory can be loaded, nothing is read: a window is a copy of some KiB, which
/// begins where a record does, and whose last record may be cut off (CopyFrom). The copy is in the
/// processor's cache when it is checked, so what is copied is read from memory once.
///
/// Bound: one window at hand and reads_in_flight under way, each of about readahead_max bytes, or
/// of one record if that is larger.
///
/// Thread safety: none.
class RecordWindows {
 public:
  /// `table` and its range index outlive this.
  RecordWindows(const TableContext* table, const RangeIndex* range_index,
                const TableIteratorOptions& options);

  // The window at hand; empty (begin = end) before the first call and after a failure.
  const char* data() const { return current_.data; }
  uint64_t begin() const { return current_.begin; }
  uint64_t end() const { return current_.end; }
  /// Whether the window is a copy of a node's memory, which may have been freed and used for
  /// something else before its owner said so.
  bool copied() const { return current_.copied; }
  /// Whether it was read.
  bool fetched() const { return table_->in_place == nullptr && !current_.copied; }

  /// A scan forwards goes on at `offset`: asks the processor for what lies ahead of it, the more
  /// the longer the scan already is. Nothing for fetched bytes, which are in its caches.
  void AskAhead(uint64_t offset) {
    AskUntil(offset + std::min(kAheadBytesMax, kAheadBytesFirst + (offset - scan_begin_)));
  }

  /// A walk backwards has parsed the window up to `offset`: asks for as much of what comes before
  /// the window.
  void AskBack(uint64_t offset) {
    const uint64_t length = current_.end - current_.begin;
    if (offset > length) AskUntil(offset - length);
  }

  /// Whether the interval is at hand, under way, or can be loaded: Load then posts no read. Asks
  /// the processor for it.
  bool IsAtHand(const RecordInterval& interval);
  /// Starts to read what a scan from the interval on is expected to need, for Load; nothing at or
  /// behind `scan_end` is read ahead.
  void StartScan(const RecordInterval& interval, uint64_t scan_end);
  /// Makes a window that holds the interval the one at hand: by one read or copy of just the
  /// interval, unless it is at hand or under way.
  Status Load(const RecordInterval& interval);
  /// As Load, but reads the interval anew: what is at hand is damaged, or counts no more.
  Status Reload(const RecordInterval& interval);
  /// Makes an empty window at `offset` the one at hand, unless it is next to the one at hand or
  /// inside: the start of a scan.
  void Jump(uint64_t offset);
  /// Makes a window that holds the interval, or what is left of one towards its beginning, the one
  /// at hand, on the way backwards. What can be loaded is copied, some intervals at a time: long
  /// pieces in the order that the processor foresees. Such a window begins with an interval.
  Status LoadBack(const RecordInterval& interval);
  /// Makes a window that holds the byte at `offset` the one at hand, on the way forwards: the one
  /// that is, or what comes next. A record, a mark or the end of a chunk is there, before the end
  /// of the records.
  Status MoveTo(uint64_t offset);
  /// The record at `offset`, of `bytes` or of a number that is not known (0), does not end in the
  /// window, which is a copy. Makes another copy, which begins with the record and has more of it,
  /// the window at hand; false if there is none.
  bool CopyFrom(uint64_t offset, uint64_t bytes);

 private:
  static constexpr uint64_t kCacheLineBytes = 64;
  static constexpr uint64_t kPrefetchBytesMax = 4096;
  /// Copies on the way forwards have so many bytes, but for the first one after a seek.
  static constexpr uint64_t kForwardBytes = 4 << 10;
  /// A scan has so much on its way into the cache, in the end: what is copied next, so that the
  /// copy waits for nothing, and some more.
  static constexpr uint64_t kAheadBytesFirst = 2 << 10;
  static constexpr uint64_t kAheadBytesMax = 5 << 10;
  /// The first copy on the way backwards has about so many bytes, and any at most so many, or those
  /// of one interval.
  static constexpr uint64_t kBackBytesFirst = 2 << 10;
  static constexpr uint64_t kBackBytesMax = 8 << 10;
  enum class Direction : uint8_t { kForward, kBackward };
  struct Window {
    const char* data = nullptr;
    uint64_t begin = 0;
    uint64_t end = 0;
    std::unique_ptr<PendingRead> read{};
    bool copied = false;
  };

  static bool Holds(const Window& window, const RecordInterval& interval) {
    return window.begin <= interval.begin && interval.end <= window.end;
  }
  /// Asks the processor for the cache line of source_ with the byte at `offset`. Into its second
  /// cache: what comes sooner is copied into the first one meanwhile.
  void Ask(uint64_t offset) const {
    PrefetchLine</*kWrite=*/0, /*kLocality=*/2>(source_.data + (offset - source_.begin));
  }
  void AskUntil(uint64_t offset) {
    const uint64_t until = current_.copied ? std::min(offset, source_.end) : 0;
    uint64_t at = asked_until_;
    for (; at < until; at += kCacheLineBytes) Ask(at);
    asked_until_ = at;
  }
  void PrefetchInPlace(uint64_t begin, uint64_t end) const;
  bool Copy(uint64_t begin, uint64_t end);
  bool CopyForward(uint64_t offset, uint64_t bytes);
  bool CopyBack(const RecordInterval& interval);
  Status Previous();
  void Abandon();
  void TurnTo(Direction direction);
  void StartAhead();
  bool IsLong() const { return readahead_ >= options_.readahead_parallel; }
  RecordInterval NextRange() const;
  RecordInterval WholeIntervals(uint64_t begin, uint64_t bytes) const;
  RecordInterval PreviousRange() const;
  Window Start(const RecordInterval& range);
  Status TakeNext();
  Status Take(size_t ahead);

  const TableContext* const table_;
  const RangeIndex* const range_index_;
  const TableIteratorOptions options_;
  Window current_;
  Direction direction_ = Direction::kForward;
  std::vector<Window> ahead_;  ///< These are in the order in which they will be used.
  size_t readahead_;           ///< Size of the next read to start.
  uint64_t scan_end_;          ///< Reads ahead, going forward, end here.

  LoadableBytes source_;  ///< What was copied from last.
  std::unique_ptr<char[]> copy_;
  size_t capacity_ = 0;
  uint64_t scan_begin_ = 0;   ///< Where a scan forwards began.
  uint64_t asked_until_ = 0;  ///< The processor was asked for what it needs up to here.
  uint64_t back_bytes_ = kBackBytesFirst;  ///< The next copy backwards has about so many.
};

}  // namespace nacre
