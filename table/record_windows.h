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
/// Where a node's memory can be loaded, nothing is read: a window lies there (`memory` is not null)
/// and is as long as the bytes are in a row. Only a record that is larger than a chunk straddles
/// its end. On the way backwards it is a copy of a few of them.
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
  /// The memory of a node that the window lies in; null if its bytes are this process's own.
  const LoadableMemory* memory() const { return current_.memory; }

  /// Asks the processor for bytes of the window that will be needed soon: what the hardware does
  /// not foresee, a jump or a walk backwards. Nothing for fetched bytes, which are in its caches.
  void Prefetch(uint64_t begin, uint64_t end) const {
    if (table_->in_place == nullptr && current_.memory == nullptr) return;
    begin = std::max(begin, current_.begin);
    end = std::min({end, current_.end, begin + kPrefetchBytesMax});
    if (begin < end) PrefetchLines(current_.data + (begin - current_.begin), end - begin);
  }

  /// Whether the window at hand is not a node's memory, nor a whole table in place.
  bool fetched() const { return table_->in_place == nullptr && current_.memory == nullptr; }
  /// Whether the interval is at hand, under way, or can be loaded: Load then posts no read.
  bool Has(const RecordInterval& interval);
  /// Starts to read what a scan from the interval on is expected to need, for Load; nothing at or
  /// behind `scan_end` is read ahead.
  void StartScan(const RecordInterval& interval, uint64_t scan_end);
  /// Makes a window that holds the interval, or its beginning and can be loaded, the one at hand:
  /// by one read of just the interval, unless it is at hand or under way.
  Status Load(const RecordInterval& interval);
  /// As Load, but reads the interval anew: what is at hand is damaged, or counts no more.
  Status Reload(const RecordInterval& interval);
  /// Makes an empty window at `offset` the one at hand, unless it is next to the one at hand or
  /// inside: the start of a scan.
  void Jump(uint64_t offset);
  /// Makes a window that holds the interval, or what is left of one towards its beginning, the one
  /// at hand, on the way backwards. What can be loaded is copied, some intervals at a time: long
  /// pieces in the order that the processor foresees, where records that were loaded one by one,
  /// each before the last, would take twice as long.
  Status LoadBack(const RecordInterval& interval);
  /// The window that begins at end(), which is before the end of the records.
  Status Next();

 private:
  static constexpr uint64_t kPrefetchBytesMax = 4096;
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
    const LoadableMemory* memory = nullptr;
  };

  static bool Holds(const Window& window, const RecordInterval& interval) {
    return window.begin <= interval.begin && interval.end <= window.end;
  }
  bool LoadAround(uint64_t offset);
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
  std::unique_ptr<char[]> back_copy_;
  size_t back_capacity_ = 0;
  uint64_t back_bytes_ = kBackBytesFirst;  ///< The next copy has about so many.
};

}  // namespace nacre
