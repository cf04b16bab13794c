#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/extent.h"
#include "table/format/internal_key.h"
#include "table/format/table_meta.h"
#include "table/ranges/range_tombstones.h"

namespace nacre {

inline constexpr int kBloomBitsPerKey = 10;

struct TableBuilderOptions {
  const Comparator* comparator = nullptr;
  /// Bytes of records per entry of the range index.
  size_t range_index_interval = 2048;
  int bloom_bits_per_key = kBloomBitsPerKey;  ///< 0: no filter.
  std::string lineage{};                      ///< What TableMeta::lineage is to hold.
  /// Kept free for SetRangeTombstones.
  uint64_t range_deletion_bytes = 0;
};

/// Writes one table: records straight into the writer's chunk buffers, then point index, range
/// index, Bloom filter and footer. The one table builder of the tree (flush, and compaction at
/// either site).
/// Thread safety: none.
class TableBuilder {
 public:
  /// `identity` gives id, database_id, family, level, manifest_version and placement; the rest is
  /// filled in by Finish.
  TableBuilder(const TableBuilderOptions& options, TableMeta identity,
               std::unique_ptr<ExtentWriter> writer);
  ~TableBuilder();

  /// Adds an entry; they come in InternalKeyComparator order, strictly ascending. The caller checks
  /// `Fits` first. After a failure only destruction is useful.
  Status Add(const Slice& user_key, uint64_t tag, const Slice& value);

  /// What the table has of range tombstones, some. Widens its bounds. Once, before Finish.
  void SetRangeTombstones(const std::vector<RangeTombstones::ListedFragment>& fragments);

  /// Whether the table, with such a record added and everything after the records, would stay
  /// within the writer's capacity.
  bool Fits(size_t key_size, size_t value_size) const;

  /// Bytes of the table if it were finished now (an upper bound, within a chunk of exact).
  uint64_t EstimatedSize() const;
  /// How much larger EstimatedSize can at most be once such a record is added. Cheaper than to ask
  /// for either: while the sum of these stays below RoomUntil(limit), every record fits, and
  /// EstimatedSize stays below `limit`.
  uint64_t GrowthBound(size_t key_size, size_t value_size) const;
  /// From EstimatedSize to `limit` or to the writer's capacity, whichever is nearer; 0 beyond it.
  uint64_t RoomUntil(uint64_t limit) const;
  uint64_t entries() const;

  /// Requires entries() > 0. Returns when every byte is acknowledged. `last_part`: as in TableMeta.
  Status Finish(TableMeta* meta, bool last_part = false);

  /// Upper bound of a table's size for `entries` entries with `user_bytes` bytes of keys and
  /// values, the largest being `largest_record` bytes (RecordBytes), under default options and
  /// without lineage: what to reserve before a flush. `largest_key`: of user keys, of which index
  /// and footer have copies; not more than a record in any case.
  static uint64_t SizeBound(uint64_t entries, uint64_t user_bytes, uint64_t largest_record,
                            size_t chunk_size, uint64_t largest_key = UINT64_MAX);

 private:
  class Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace nacre
