#pragma once

#include <cstdint>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/record.h"
#include "table/format/table_meta.h"

namespace nacre {

/// Compares all plain bytes of a table, which pass from the first to the last, with the checksums
/// that are in them and in the table's meta: records, sections, footer. Only padding is covered by
/// none.
///
/// Thread safety: none.
class TableStreamCheck {
 public:
  /// `meta` outlives this.
  explicit TableStreamCheck(const TableMeta* meta);

  /// The next bytes: whole chunks, and at last what is left. `Corruption` naming table and offset;
  /// `suspect()` says where the damage must be.
  Status Add(const Slice& bytes);
  /// All of the table has passed.
  Status Finish();

  /// Valid after a failure: bytes of the table, of which some are damaged.
  const TableSection& suspect() const { return suspect_; }

 private:
  /// A part of the table that has one checksum in the meta.
  struct Section {
    const TableSection* place;
    const char* name;
    uint32_t crc = 0;
  };

  Status Fail(uint64_t offset, uint64_t length, const char* what);
  /// `bytes` are those of a chunk at `begin` that are of records.
  Status AddRecords(uint64_t begin, const Slice& bytes);
  /// The rest of a record that is larger than a chunk, or as much of it as there is.
  Status AddToLarge(uint64_t at, const Slice& bytes, uint64_t* taken);
  Status CheckFooter();

  const TableMeta* const meta_;
  const RecordSeed seed_;
  const uint64_t chunk_bytes_;
  const uint64_t table_bytes_;
  const uint64_t alignment_;
  uint64_t position_ = 0;
  uint64_t entries_ = 0;

  // The state of a record that goes on in the next chunk.
  uint64_t large_begin_ = 0;
  uint64_t large_left_ = 0;  ///< 0: there is none.
  uint32_t large_crc_ = 0;
  uint32_t large_expected_ = 0;

  Section sections_[5];
  std::string footer_;
  TableSection suspect_;
};

}  // namespace nacre
