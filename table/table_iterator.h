#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "table/format/record.h"
#include "table/index/loaded_range_index.h"
#include "table/iterator/internal_iterator.h"
#include "table/record_windows.h"
#include "table/table_context.h"
#include "table/table_reader.h"

namespace nacre {

/// Iterates over the records of one table, in windows. Every record that it passes is checked,
/// those that a Seek skips too: a damaged length or key must not hide a record. What is damaged is
/// read again, from other fragments than before; what was copied out of a node's memory, which may
/// have been freed, is read first.
///
/// A run is what was parsed at once: forwards some records, the more the longer the scan already
/// is, backwards those of an interval or a copy. A damaged record ends a run, and no entry before
/// it is lost.
class TableIterator final : public InternalIterator {
 public:
  /// `table` outlives the iterator, which holds its range index as long as it lives.
  TableIterator(const TableContext* table, RangeIndexRef range_index,
                const TableIteratorOptions& options);
  ~TableIterator() override { EndScan(); }

  void SeekToFirst() override;
  void SeekToLast() override;
  void PrepareSeek(const Slice& internal_key, const Slice* upper_bound) override;
  void Seek(const Slice& internal_key) override;
  void SeekForPrev(const Slice& internal_key) override;
  Status status() const override { return status_; }

 private:
  static constexpr uint64_t kNoScan = UINT64_MAX;
  /// Records that a run forwards has at most. It is a part of those passed, so that a short scan
  /// checks few in vain.
  static constexpr size_t kRunMax = 16;
  static constexpr size_t kPassedForEach = 4;

  void NextRun() override;
  void PrevRun() override;

  void SeekIn(const RecordInterval& interval, const Slice& internal_key);
  void EndScan();
  bool AppendNext();
  bool MakeAvailable(uint64_t* offset);
  bool ReadAgain(uint64_t offset, RecordParse parse);
  void MoveBackTo(uint64_t limit);
  RecordInterval IntervalBefore(uint64_t limit);
  RecordParse ParseBack(uint64_t begin, uint64_t end, bool all, uint64_t* fault);
  bool ReadBackAgain(const RecordInterval& interval, uint64_t fault, RecordParse parse);
  void StartRun(uint64_t offset);
  void Append(uint64_t offset, const Record& record);
  Slice BytesAt(uint64_t offset) const {
    return {windows_.data() + (offset - windows_.begin()), windows_.end() - offset};
  }
  bool Fail(Status status);
  bool FailAt(uint64_t offset, RecordParse parse, const std::string& nodes = {});

  const TableContext* const table_;
  const RangeIndexRef range_index_ref_;
  const RangeIndex& range_index_;
  const uint64_t records_bytes_;
  const uint64_t chunk_size_;
  const uint64_t alignment_mask_;
  const bool verify_checksums_;

  std::vector<InternalEntry> entries_;  ///< The run.
  std::vector<uint64_t> offsets_;       ///< Where its records begin.
  uint64_t next_offset_ = 0;            ///< Behind the last of them and its padding.
  size_t passed_ = 0;                   ///< Records of the runs forwards since the last seek.
  /// A record or a mark that starts at least kEndOfChunkMarkBytes before this lies in the window
  /// and in the current chunk. 0 where that has to be found out first.
  uint64_t available_until_ = 0;

  std::optional<RecordInterval> prepared_;  ///< Where the next Seek goes.
  /// Behind the interval in which a scan of fetched bytes began with a Seek; kNoScan: there is
  /// none.
  uint64_t scanned_from_ = kNoScan;

  /// Going backwards: as BoundariesUpTo gave them; the last is where we are.
  std::vector<uint64_t> boundaries_;

  RecordWindows windows_;
  Status status_;
};

}  // namespace nacre
