#pragma once

#include <cstddef>
#include <cstdint>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {

// A record (docs/formats.md):
//
//     fixed32  CRC32C of everything after this field, begun with the table's id and the record's
//              offset in the table
//     varint32 key length + 1 (0: no more records in this chunk)
//     varint32 length of tag and value
//     bytes    user key
//     varint64 tag: sequence << 4 | type
//     bytes    value
//
// Records start at multiples of 1 << alignment_shift. One never straddles a chunk unless it is
// larger than a chunk, in which case it starts one. A chunk whose records end more than
// kEndOfChunkMarkBytes before its end has a mark there: a checksum and the zero length. What is
// left after it is zero.

inline constexpr size_t kRecordChecksumBytes = 4;
/// Checksum and two lengths, all that is needed to know the length of the record, at most.
inline constexpr size_t kMaxRecordHeaderBytes = 14;
/// Checksum and a zero.
inline constexpr size_t kEndOfChunkMarkBytes = 5;
/// Two lengths, a tag, no key, no value.
inline constexpr size_t kMinRecordBytes = 7;

/// What the checksums of one table's records start from. Cheap to make, cheaper to keep.
///
/// With the offset in it a checksum also tells when the same table has other bytes at this place:
/// a fragment may lie where another one of its table was before. Two offsets that differ give two
/// checksums that do, as a CRC of the same bytes from two states ends in two.
class RecordSeed {
 public:
  explicit RecordSeed(uint64_t table_id);
  /// The seed of what begins at this offset of the table.
  RecordSeed At(uint64_t offset) const {
    RecordSeed seed = *this;
    seed.crc_ ^= static_cast<uint32_t>(offset) ^ static_cast<uint32_t>(offset >> 32);
    return seed;
  }
  uint32_t crc() const { return crc_; }

 private:
  uint32_t crc_;
};

struct Record {
  Slice user_key;
  uint64_t tag = 0;  ///< As PackTag makes it.
  Slice value;
  size_t encoded_bytes = 0;  ///< Excludes the padding behind it.
};

/// Key and value must be shorter than 4 GiB - 16 together.
size_t RecordBytes(size_t key_size, uint64_t tag, size_t value_size);

/// Writes the record at `dst`, which has RecordBytes; returns one past it.
char* EncodeRecord(char* dst, RecordSeed seed, const Slice& user_key, uint64_t tag,
                   const Slice& value);
char* EncodeRecord(char* dst, uint64_t table_id, const Slice& user_key, uint64_t tag,
                   const Slice& value);

/// A record that is written in pieces: `header`, user key, `tag_bytes`, value.
struct RecordPieces {
  char header[kMaxRecordHeaderBytes];
  size_t header_bytes;
  char tag[kMaxVarint64Bytes];
  size_t tag_bytes;
};
RecordPieces MakeRecordPieces(RecordSeed seed, const Slice& user_key, uint64_t tag,
                              const Slice& value);

/// Writes the kEndOfChunkMarkBytes that say that no record follows in this chunk.
void EncodeEndOfChunkMark(char* dst, RecordSeed seed);

enum class RecordParse : uint8_t {
  kOk,
  kEndOfChunk,  ///< The mark that no record follows in this chunk (its checksum matches).
  kTruncated,   ///< The record is longer than the bytes given.
  kCorrupt,     ///< Malformed, or (when checked) the checksum does not match.
};

/// Parses the record at the start of `bytes`. Safe on any bytes. `*record` views `bytes`, and is
/// set only by kOk.
RecordParse ParseRecord(const Slice& bytes, RecordSeed seed, bool verify_checksum, Record* record);
RecordParse ParseRecord(const Slice& bytes, uint64_t table_id, bool verify_checksum,
                        Record* record);

/// What comes before the value of a record.
struct RecordHead {
  Slice user_key;
  uint64_t tag = 0;
  size_t bytes = 0;  ///< The value begins here.
  size_t value_bytes = 0;
};
/// Parses the head at the start of `prefix`, which has to hold all of it, and checks no checksum.
/// False if it does not, or no record begins here. Safe on any bytes.
bool ParseRecordHead(const Slice& prefix, RecordHead* head);
/// Whether the checksum of a record matches, whose value lies elsewhere than its head.
bool RecordChecksumMatches(const Slice& head, const Slice& value, RecordSeed seed);

/// Bytes of the whole record, from its first bytes (at least kMaxRecordHeaderBytes, or all there
/// are); 0 if they are malformed. This tells how much to fetch of a large record.
uint64_t RecordBytesFromHeader(const Slice& prefix);

// Inlined, since scans parse a record after the other: what they keep of it stays in registers, and
// the processor goes on to the next record while it computes the checksum of this one.

namespace record_internal {

inline constexpr int kTypeBits = 4;
inline constexpr uint64_t kTypeMask = (1 << kTypeBits) - 1;

/// False if the type or the sequence is not one of ours.
inline bool TagFromStored(uint64_t stored, uint64_t* tag) {
  const uint64_t type = stored & kTypeMask;
  const uint64_t sequence = stored >> kTypeBits;
  // Range deletions are kept apart.
  if (!IsValueType(type) || type == static_cast<uint64_t>(ValueType::kRangeDeletion) ||
      sequence > kMaxSequenceNumber) {
    return false;
  }
  *tag = PackTag(sequence, static_cast<ValueType>(type));
  return true;
}

/// As DecodeVarint32, fast for the two-byte lengths that most values have.
inline const char* DecodeLength(const char* p, const char* limit, uint32_t* length) {
  if (limit - p >= 2) [[likely]] {
    const auto first = static_cast<uint8_t>(p[0]);
    if (first < 0x80) {
      *length = first;
      return p + 1;
    }
    const auto second = static_cast<uint8_t>(p[1]);
    if (second < 0x80) {
      *length = static_cast<uint32_t>(first & 0x7f) | static_cast<uint32_t>(second) << 7;
      return p + 2;
    }
  }
  return DecodeVarint32(p, limit, length);
}

/// Why a length could not be decoded from [p, limit).
inline RecordParse LengthFault(const char* p, const char* limit) {
  return limit - p < kMaxVarint32Bytes ? RecordParse::kTruncated : RecordParse::kCorrupt;
}

}  // namespace record_internal

inline RecordParse ParseRecord(const Slice& bytes, RecordSeed seed, bool verify_checksum,
                               Record* record) {
  if (bytes.size() < kEndOfChunkMarkBytes) return RecordParse::kTruncated;
  const char* const body = bytes.data() + kRecordChecksumBytes;
  const char* const limit = bytes.end();

  uint32_t key_field = 0;
  const char* p = record_internal::DecodeLength(body, limit, &key_field);
  if (p == nullptr) return record_internal::LengthFault(body, limit);
  if (key_field == 0) [[unlikely]] {
    const uint32_t crc = Crc32c(body, static_cast<size_t>(p - body), seed.crc());
    return crc == DecodeFixed32(bytes.data()) ? RecordParse::kEndOfChunk : RecordParse::kCorrupt;
  }
  uint32_t rest = 0;
  const char* const key = record_internal::DecodeLength(p, limit, &rest);
  if (key == nullptr) return record_internal::LengthFault(p, limit);
  if (rest == 0) return RecordParse::kCorrupt;
  const size_t key_size = key_field - 1;
  if (static_cast<uint64_t>(limit - key) < uint64_t{key_size} + rest) {
    return RecordParse::kTruncated;
  }
  const char* const end = key + key_size + rest;
  if (verify_checksum) [[likely]] {
    const uint32_t crc = Crc32c(body, static_cast<size_t>(end - body), seed.crc());
    if (crc != DecodeFixed32(bytes.data())) return RecordParse::kCorrupt;
  }
  uint64_t stored_tag = 0;
  const char* const value = DecodeVarint64(key + key_size, end, &stored_tag);
  if (value == nullptr || !record_internal::TagFromStored(stored_tag, &record->tag))
    return RecordParse::kCorrupt;
  record->user_key = Slice(key, key_size);
  record->value = Slice(value, static_cast<size_t>(end - value));
  record->encoded_bytes = static_cast<size_t>(end - bytes.data());
  return RecordParse::kOk;
}

}  // namespace nacre
