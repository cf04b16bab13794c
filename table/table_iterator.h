#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "table/format/record.h"
#include "table/index/loaded_range_index.h"
#include "table/iterator/internal_iterator.h"
#include "table/record_loader.h"
#include "table/record_windows.h"
#include "table/table_context.h"
#include "table/table_reader.h"

namespace nacre {

/// Iterates over the records of one table, in place or through windows. Every record that it passes
/// is checked, those that a Seek skips too: a damaged length or key must not hide a record. What is
/// damaged is read again, from other fragments than before; of a window in a node's memory, which
/// may have been freed, it is read first.
class TableIterator final : public InternalIterator {
 public:
  /// `table` outlives the iterator, which holds its range index as long as it lives.
  TableIterator(const TableContext* table, RangeIndexRef range_index,
                const TableIteratorOptions& options);
  ~TableIterator() override { EndScan(); }

  bool Valid() const override { return valid_; }
  void SeekToFirst() override;
  void SeekToLast() override;
  void PrepareSeek(const Slice& internal_key, const Slice* upper_bound) override;
  void Seek(const Slice& internal_key) override;
  void SeekForPrev(const Slice& internal_key) override;
  void Next() override;
  void Prev() override;

  Slice user_key() const override { return record_.user_key; }
  uint64_t tag() const override { return record_.tag; }
  Slice value() const override { return record_.value; }
  Status status() const override { return status_; }

 private:
  static constexpr uint64_t kNoScan = UINT64_MAX;

  void SeekIn(const RecordInterval& interval, const Slice& internal_key);
  void EndScan();
  void MoveForwardTo(uint64_t offset);
  bool MakeAvailable(uint64_t* offset);
  bool ReadAgain(uint64_t offset, RecordParse parse);
  bool MoveBackTo(const RecordInterval& interval, uint64_t limit);
  bool TakeLastListed(uint64_t limit);
  RecordInterval IntervalBefore(uint64_t limit);
  RecordParse ListRecords(uint64_t begin, uint64_t end, bool verify, uint64_t* fault);
  bool ListAgain(uint64_t begin, uint64_t end, uint64_t fault, RecordParse parse);
  RecordParse ParseAt(uint64_t offset);
  RecordParse ParseLengthAt(uint64_t offset, bool verify, size_t* encoded_bytes);
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

  bool valid_ = false;
  Record record_;
  uint64_t offset_ = 0;       ///< The offset of the current record.
  uint64_t next_offset_ = 0;  ///< Behind it and its padding.
  /// A record or a mark that starts at least kEndOfChunkMarkBytes before this lies in the window
  /// and in the current chunk. 0 where that has to be found out first.
  uint64_t available_until_ = 0;

  std::optional<RecordInterval> prepared_;  ///< Where the next Seek goes.
  /// Behind the interval in which a scan of fetched bytes began with a Seek; kNoScan: there is
  /// none.
  uint64_t scanned_from_ = kNoScan;

  /// Going backwards: records [0, before_) of the list come before the current one, and the list
  /// starts with the interval at list_begin_.
  bool backward_ = false;
  std::vector<uint64_t> list_;
  size_t before_ = 0;
  uint64_t list_begin_ = 0;
  std::vector<uint64_t> boundaries_;  ///< As BoundariesUpTo gave them; the last is where we are.

  RecordWindows windows_;
  RecordLoader loader_;
  Status status_;
};

}  // namespace nacre
