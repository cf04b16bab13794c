#pragma once

#include <cstddef>
#include <cstdint>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/internal_key.h"

namespace nacre {

// A record (docs/formats.md):
//
//     fixed32  CRC32C of the table id (fixed64) and everything after this field
//     varint32 key length + 1 (0: no more records in this chunk)
//     varint32 value length
//     bytes    user key
//     varint64 sequence << 4 | type
//     bytes    value
//
// Records start at multiples of 1 << alignment_shift. One never straddles a chunk unless it is
// larger than a chunk, in which case it starts one.

struct Record {
  Slice user_key;
  uint64_t tag = 0;
  Slice value;
  size_t encoded_bytes = 0;  ///< Without the padding behind it.
};

size_t RecordBytes(size_t key_size, uint64_t tag, size_t value_size);

/// Writes the record at `dst`, which has RecordBytes; returns one past it.
char* EncodeRecord(char* dst, uint64_t table_id, const Slice& user_key, uint64_t tag,
                   const Slice& value);

enum class RecordParse : uint8_t {
  kOk,
  kEndOfChunk,  ///< The mark that no record follows in this chunk.
  kTruncated,   ///< The record is longer than the bytes given.
  kCorrupt,     ///< Malformed, or (when checked) the checksum does not match.
};

/// Parses the record at the start of `bytes`. Safe on any bytes. `*record` views `bytes`.
RecordParse ParseRecord(const Slice& bytes, uint64_t table_id, bool verify_checksum,
                        Record* record);

/// Bytes of the whole record, from its first bytes (at least 14, or all there are); 0 if they are
/// malformed. To learn how much to fetch of a large record.
uint64_t RecordBytesFromHeader(const Slice& prefix);

}  // namespace nacre
