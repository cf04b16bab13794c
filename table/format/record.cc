#include "table/format/record.h"

#include <cassert>
#include <cstring>

#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {

using record_internal::DecodeLength;
using record_internal::kTypeBits;
using record_internal::kTypeMask;
using record_internal::TagFromStored;

namespace {

static_assert(kMaxRecordHeaderBytes == kRecordChecksumBytes + 2 * kMaxVarint32Bytes);
static_assert(kEndOfChunkMarkBytes == kRecordChecksumBytes + 1);
static_assert(kMinRecordBytes == kRecordChecksumBytes + 3);
static_assert(static_cast<uint64_t>(kValueTypeForSeek) <= record_internal::kTypeMask);

uint64_t StoredTag(uint64_t tag) {
  assert(static_cast<uint64_t>(TagType(tag)) <= kTypeMask);
  return TagSequence(tag) << kTypeBits | static_cast<uint64_t>(TagType(tag));
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
