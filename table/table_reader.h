#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/extent.h"
#include "table/format/internal_key.h"
#include "table/format/record.h"
#include "table/format/table_meta.h"
#include "table/index/point_index.h"
#include "table/index/range_index.h"
#include "table/iterator/internal_iterator.h"
#include "table/ranges/range_tombstones.h"
#include "util/codes/bloom.h"

namespace nacre {

/// How an iterator fetches and checks.
struct TableIteratorOptions {
  bool verify_checksums = true;
  size_t readahead_initial = 8 << 10;  ///< First sequential fetch after a Seek; then doubles.
  size_t readahead_max = 256 << 10;    ///< Bytes of one fetch at most.
  int reads_in_flight = 2;
  /// Fetches below this go one at a time: a short scan must not fetch what it will not need.
  size_t readahead_parallel = 32 << 10;
  /// Whether another thread may do the transfers of reads ahead, where it is threads that do them.
  bool hand_over_reads = false;
};

class IndexMemory;

/// A finished table, opened: its metadata, its range index while there is room for it, and as much
/// of the point tiers as the owner gives it. Point lookups are split so that the caller can
/// prefetch and batch: `Probe` here (no I/O), the read of the candidate by the caller, then
/// `MatchRecord` here.
///
/// Thread safety: const methods from many threads at once. The point tiers are immutable here:
/// the owner of the reader swaps tiers by swapping PointTier objects (see db/).
class TableReader {
 public:
  /// Reads the range index and the range tombstones through `extent` and checks them. `Corruption`
  /// names the table, `InvalidArgument` a comparator that is not the table's. The comparator
  /// outlives the reader, and so does `memory`, in which the range index keeps its place only as
  /// long as it is used; null: it stays.
  static Status Open(std::shared_ptr<const TableMeta> meta, const Comparator* comparator,
                     std::shared_ptr<Extent> extent, std::unique_ptr<TableReader>* reader,
                     IndexMemory* memory = nullptr);
  /// The same without reading anything.
  static Status OpenUnread(std::shared_ptr<const TableMeta> meta, const Comparator* comparator,
                           std::shared_ptr<Extent> extent, std::unique_ptr<TableReader>* reader,
                           IndexMemory* memory = nullptr);
  ~TableReader();

  // A caller that needs a range index makes sure that it is read; these read ahead of need. A
  // failure leaves all as it was.

  /// Reads the range index, unless it is here.
  Status LoadRangeIndex() const;
  /// The same, if it can be kept without that those of other tables have to go.
  Status PreloadRangeIndex() const;
  /// Reads the range tombstones, if the table has any. They stay.
  Status LoadRangeTombstones() const;
  /// Null if the table has none, or they were not read.
  const RangeTombstones* range_tombstones() const;

  const TableMeta& meta() const { return *meta_; }
  Extent* extent() const { return extent_.get(); }
  const std::shared_ptr<Extent>& shared_extent() const { return extent_; }

  /// Iterates over all entries. The reader must outlive it. A damaged record ends it with
  /// `Corruption` that names table and offset.
  std::unique_ptr<InternalIterator> NewIterator(const TableIteratorOptions& options) const;

  enum class Match : uint8_t {
    kNo,         ///< Another key: a false positive of the fingerprint.
    kYes,        ///< `*record` is the newest version of the key visible at the snapshot.
    kOlder,      ///< The key's record, but newer than the snapshot: look with an iterator.
    kTruncated,  ///< The candidate's length did not hold the record (the index is malformed).
    kCorrupt,
  };
  /// `bytes` were read at `offset`, a candidate's place. The checksum, if asked for, comes first: a
  /// damaged key is kCorrupt, not kNo, and so is another record of the table.
  Match MatchRecord(uint64_t offset, const Slice& bytes, const Slice& user_key,
                    SequenceNumber snapshot, bool verify_checksum, Record* record) const;

  /// As MatchRecord, of bytes in memory that others may change (LoadableMemory): each is copied
  /// before it is looked at. What `*record` views lies in `*value`, if it is a value and its key is
  /// not a very long one, or else in `*copy`; either may hold something else afterwards. The caller
  /// then asks whether the memory counts.
  Match LoadRecord(uint64_t offset, const Slice& bytes, const Slice& user_key,
                   SequenceNumber snapshot, bool verify_checksum, PinnableSlice* value,
                   std::unique_ptr<char[]>* copy, Record* record) const;

  /// The interval with the newest record of `user_key` that `snapshot` sees, if the table has one.
  /// No value means that the range index is not resident. Reads nothing from the nodes.
  std::optional<RecordInterval> IntervalOf(const Slice& user_key, SequenceNumber snapshot) const;
  /// Looks for it in the bytes of that interval. kYes, kNo, or kCorrupt: every record on the way is
  /// checked.
  Match SearchInterval(const RecordInterval& interval, const Slice& bytes, const Slice& user_key,
                       SequenceNumber snapshot, Record* record) const;

  /// `*offset`, within the table, is near `internal_key`. Reads the range index only if the key is
  /// between the table's ends.
  Status ApproximateOffset(const Slice& internal_key, uint64_t* offset) const;
  /// User keys that cut the records into parts of about `part_bytes` > 0, ascending; fewer where
  /// the range index has no key between two of them. Reads the range index unless it is resident.
  Status CutKeys(uint64_t part_bytes, std::vector<std::string>* user_keys) const;

  /// Bytes kept in local memory (range index, range tombstones and this object; not point tiers).
  size_t MemoryUsage() const;

  /// Fetches and checks sections of the table. `*index` views the section's memory.
  Status LoadPointIndex(std::unique_ptr<char[]>* section, PointIndex* index) const;
  /// Null if the table has no filter.
  Status LoadBloom(std::unique_ptr<char[]>* section) const;
  /// Reads only the trailer of the point index, for remote bucket reads.
  Status LoadPointIndexShape(PointIndexShape* shape) const;

 private:
  class Rep;
  TableReader();
  std::shared_ptr<const TableMeta> meta_;
  std::shared_ptr<Extent> extent_;
  std::unique_ptr<Rep> rep_;
};

}  // namespace nacre
