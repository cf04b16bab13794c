#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/extent.h"
#include "table/format/internal_key.h"
#include "table/format/placement.h"

namespace nacre {

class TableSeal;

/// A part of a table's bytes, the plain ones.
struct TableSection {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint32_t crc = 0;  ///< CRC32C of the section's bytes; of `records` unused (each has its own).
};

/// Everything that is known of a table without reading its records. It is what the footer holds,
/// what a compaction answers with, and what a version keeps for each table. Byte layout in
/// docs/formats.md.
struct TableMeta {
  uint64_t id = 0;  ///< Unique in the database, never reused.
  uint64_t database_id = 0;
  uint32_t family = 0;  ///< Id of the column family; 0: the default one.
  uint32_t level = 0;
  uint64_t manifest_version = 0;  ///< Version of the edit that made it.
  Placement placement;
  std::string comparator;  ///< Its name.

  /// First and last internal key (user key and fixed64 tag). If range tombstones reach further than
  /// the records, these are their begin, and their end with the greatest tag, so that the table
  /// ends before any entry of that user key.
  std::string smallest;
  std::string largest;
  /// The bounds' user keys are only the first bytes of the true ones: in a fragment head that had
  /// no room for more. The footer has them whole.
  bool bounds_shortened = false;
  SequenceNumber smallest_sequence = 0;
  SequenceNumber largest_sequence = 0;

  uint64_t entries = 0;       ///< Records, tombstones included.
  bool has_operands = false;  ///< Some are operands of merges.
  uint64_t tombstones = 0;
  uint64_t user_keys = 0;       ///< Distinct user keys: entries of the point index.
  uint64_t user_bytes = 0;      ///< Keys and values.
  uint64_t largest_record = 0;  ///< Bytes of the largest record: the next compaction's slack.

  /// How the table is encrypted; null: it is not. Its key is there, and the bounds above are, once
  /// OpenSeal was called (table/seal/table_keys.h).
  std::shared_ptr<const TableSeal> seal;

  uint64_t chunk_size = 0;       ///< As stored (table/format/table_seal.h).
  uint32_t alignment_shift = 0;  ///< Records start at multiples of 1 << alignment_shift.
  uint64_t size = 0;             ///< Bytes of the table as stored, footer included, heads not.
  TableSection records;          ///< Up to the end of the last record.
  TableSection point_index;
  TableSection range_index;
  TableSection bloom;
  TableSection range_deletions;  ///< RangeTombstones; of length 0 if there are none.
  /// What the owner wants found beside the records, if nothing but tables is left
  /// (db/manifest/table_lineage.h); opaque here. Empty: nothing.
  TableSection lineage;
  uint32_t part = 0;       ///< Number of the table among the outputs of the merge that made it.
  bool last_part = false;  ///< The merge ended with it.

  bool sealed() const { return seal != nullptr; }
  /// Bytes of a chunk and of the table before they were encrypted.
  uint64_t plain_chunk_size() const;
  uint64_t plain_size() const;
  bool has_range_deletions() const { return range_deletions.length > 0; }
  Slice smallest_user_key() const { return ExtractUserKey(smallest); }
  Slice largest_user_key() const { return ExtractUserKey(largest); }
};

/// Appends the encoded meta (self-delimiting, with magic, format version and CRC32C): the footer
/// without its trailer, the form in which a meta crosses the wire too.
void EncodeTableMeta(const TableMeta& meta, std::string* dst);
/// Consumes one meta from `*input`. `Corruption` naming what is wrong; `NotSupported` for a newer
/// format version. Safe on any bytes.
Status DecodeTableMeta(Slice* input, TableMeta* meta);

/// `Corruption` if the numbers of `meta` cannot be those of a table: sections outside of it, no
/// records.
Status CheckTableMeta(const TableMeta& meta);

/// Bytes behind the meta at the very end of a table, from which the footer is found:
///
///     fixed32 bytes of the encoded meta; fixed32 CRC32C of that number; fixed64 magic
inline constexpr size_t kFooterTrailerBytes = 16;

/// Appends the footer: the encoded meta and the trailer.
void EncodeFooter(const TableMeta& meta, std::string* dst);
/// Bytes that EncodeFooter would append.
size_t FooterBytes(const TableMeta& meta);
/// Reads the meta of a table of which only the bytes are at hand. `Corruption` says what is wrong
/// with it; failures of the extent as they are.
Status ReadFooter(Extent* extent, TableMeta* meta);

/// Appends what the head of each fragment holds: the encoded meta, its bounds shortened if it were
/// longer than kFragmentHeadBytes otherwise. `InvalidArgument` if even that does not help. Of a
/// table that is encrypted the bounds have no user keys at all, and its seal follows.
Status EncodeFragmentHead(const TableMeta& meta, std::string* dst);
/// Reads it, as DecodeTableMeta does. A seal that is not there, or makes no sense, is null.
Status DecodeFragmentHead(const Slice& bytes, TableMeta* meta);

}  // namespace nacre
