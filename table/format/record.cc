#include "table/format/record.h"

#include <cassert>
#include <cstring>

#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {
namespace {

constexpr int kTypeBits = 4;
constexpr uint64_t kTypeMask = (1 << kTypeBits) - 1;

static_assert(kMaxRecordHeaderBytes == kRecordChecksumBytes + 2 * kMaxVarint32Bytes);
static_assert(kEndOfChunkMarkBytes == kRecordChecksumBytes + 1);
static_assert(kMinRecordBytes == kRecordChecksumBytes + 3);
static_assert(static_cast<uint64_t>(kValueTypeForSeek) <= kTypeMask);

uint64_t StoredTag(uint64_t tag) {
  assert(static_cast<uint64_t>(TagType(tag)) <= kTypeMask);
  return TagSequence(tag) << kTypeBits | static_cast<uint64_t>(TagType(tag));
}

/// False if the type or the sequence is not one of ours.
bool TagFromStored(uint64_t stored, uint64_t* tag) {
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
RecordParse LengthFault(const char* p, const char* limit) {
  return limit - p < kMaxVarint32Bytes ? RecordParse::kTruncated : RecordParse::kCorrupt;
}

char* EncodeLengths(char* p, const Slice& user_key, size_t tag_bytes, const Slice& value) {
  p = EncodeVarint32(p, static_cast<uint32_t>(user_key.size() + 1));
  return EncodeVarint32(p, static_cast<uint32_t>(tag_bytes + value.size()));
}

}  // namespace

RecordSeed::RecordSeed(uint64_t table_id) {
  char id[sizeof(table_id)];
  EncodeFixed64(id, table_id);
  crc_ = Crc32c(id, sizeof(id));
}

size_t RecordBytes(size_t key_size, uint64_t tag, size_t value_size) {
  const size_t rest = static_cast<size_t>(VarintLength(StoredTag(tag))) + value_size;
  return kRecordChecksumBytes + static_cast<size_t>(VarintLength(key_size + 1)) +
         static_cast<size_t>(VarintLength(rest)) + key_size + rest;
}

char* EncodeRecord(char* dst, RecordSeed seed, const Slice& user_key, uint64_t tag,
                   const Slice& value) {
  const uint64_t stored_tag = StoredTag(tag);
  char* const body = dst + kRecordChecksumBytes;
  char* p = EncodeLengths(body, user_key, static_cast<size_t>(VarintLength(stored_tag)), value);
  std::memcpy(p, user_key.data(), user_key.size());
  p = EncodeVarint64(p + user_key.size(), stored_tag);
  std::memcpy(p, value.data(), value.size());
  p += value.size();
  EncodeFixed32(dst, Crc32c(body, static_cast<size_t>(p - body), seed.crc()));
  return p;
}

char* EncodeRecord(char* dst, uint64_t table_id, const Slice& user_key, uint64_t tag,
                   const Slice& value) {
  return EncodeRecord(dst, RecordSeed(table_id), user_key, tag, value);
}

RecordPieces MakeRecordPieces(RecordSeed seed, const Slice& user_key, uint64_t tag,
                              const Slice& value) {
  RecordPieces pieces;
  pieces.tag_bytes = static_cast<size_t>(EncodeVarint64(pieces.tag, StoredTag(tag)) - pieces.tag);
  const char* const body = pieces.header + kRecordChecksumBytes;
  const char* const end =
      EncodeLengths(pieces.header + kRecordChecksumBytes, user_key, pieces.tag_bytes, value);
  pieces.header_bytes = static_cast<size_t>(end - pieces.header);
  uint32_t crc = Crc32c(body, static_cast<size_t>(end - body), seed.crc());
  crc = Crc32c(user_key.data(), user_key.size(), crc);
  crc = Crc32c(pieces.tag, pieces.tag_bytes, crc);
  crc = Crc32c(value.data(), value.size(), crc);
  EncodeFixed32(pieces.header, crc);
  return pieces;
}

void EncodeEndOfChunkMark(char* dst, RecordSeed seed) {
  dst[kRecordChecksumBytes] = 0;
  EncodeFixed32(dst, Crc32c(dst + kRecordChecksumBytes, 1, seed.crc()));
}

RecordParse ParseRecord(const Slice& bytes, RecordSeed seed, bool verify_checksum, Record* record) {
  if (bytes.size() < kEndOfChunkMarkBytes) return RecordParse::kTruncated;
  const char* const body = bytes.data() + kRecordChecksumBytes;
  const char* const limit = bytes.end();

  uint32_t key_field = 0;
  const char* p = DecodeLength(body, limit, &key_field);
  if (p == nullptr) return LengthFault(body, limit);
  if (key_field == 0) [[unlikely]] {
    const uint32_t crc = Crc32c(body, static_cast<size_t>(p - body), seed.crc());
    return crc == DecodeFixed32(bytes.data()) ? RecordParse::kEndOfChunk : RecordParse::kCorrupt;
  }
  uint32_t rest = 0;
  const char* const key = DecodeLength(p, limit, &rest);
  if (key == nullptr) return LengthFault(p, limit);
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
  if (value == nullptr || !TagFromStored(stored_tag, &record->tag)) return RecordParse::kCorrupt;
  record->user_key = Slice(key, key_size);
  record->value = Slice(value, static_cast<size_t>(end - value));
  record->encoded_bytes = static_cast<size_t>(end - bytes.data());
  return RecordParse::kOk;
}

RecordParse ParseRecord(const Slice& bytes, uint64_t table_id, bool verify_checksum,
                        Record* record) {
  return ParseRecord(bytes, RecordSeed(table_id), verify_checksum, record);
}

bool ParseRecordHead(const Slice& prefix, RecordHead* head) {
  if (prefix.size() < kEndOfChunkMarkBytes) return false;
  uint32_t key_field = 0;
  uint32_t rest = 0;
  const char* p = DecodeLength(prefix.data() + kRecordChecksumBytes, prefix.end(), &key_field);
  if (p == nullptr || key_field == 0) return false;
  const char* const key = DecodeLength(p, prefix.end(), &rest);
  const size_t key_size = key_field - 1;
  if (key == nullptr || key_size >= static_cast<size_t>(prefix.end() - key)) return false;
  uint64_t stored_tag = 0;
  const char* const tag = key + key_size;
  const char* const value = DecodeVarint64(tag, prefix.end(), &stored_tag);
  if (value == nullptr || !TagFromStored(stored_tag, &head->tag)) return false;
  const auto tag_bytes = static_cast<size_t>(value - tag);
  if (tag_bytes > rest) return false;
  head->user_key = Slice(key, key_size);
  head->bytes = static_cast<size_t>(value - prefix.data());
  head->value_bytes = rest - tag_bytes;
  return true;
}

bool RecordChecksumMatches(const Slice& head, const Slice& value, RecordSeed seed) {
  const uint32_t crc =
      Crc32c(head.data() + kRecordChecksumBytes, head.size() - kRecordChecksumBytes, seed.crc());
  return Crc32c(value.data(), value.size(), crc) == DecodeFixed32(head.data());
}

uint64_t RecordBytesFromHeader(const Slice& prefix) {
  if (prefix.size() < kRecordChecksumBytes) return 0;
  uint32_t key_field = 0;
  uint32_t rest = 0;
  const char* p = DecodeVarint32(prefix.data() + kRecordChecksumBytes, prefix.end(), &key_field);
  if (p == nullptr || key_field == 0) return 0;
  p = DecodeVarint32(p, prefix.end(), &rest);
  if (p == nullptr || rest == 0) return 0;
  return static_cast<uint64_t>(p - prefix.data()) + (key_field - 1) + uint64_t{rest};
}

}  // namespace nacre
