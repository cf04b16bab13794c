#include "table/format/fragment_checksums.h"

#include <cassert>

#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {
namespace {

constexpr size_t kTailMagicAt = 0;
constexpr size_t kTailVersionAt = 4;
constexpr size_t kFragmentAt = 6;
constexpr size_t kTableIdAt = 8;
constexpr size_t kTailBytesAt = 16;
constexpr size_t kChunkSizeAt = 24;
constexpr size_t kTailFixedBytes = 32;

constexpr uint32_t kTailMagic = 0x5446434e;  // "NCFT"
constexpr uint16_t kTailFormatVersion = 1;

uint64_t Chunks(uint64_t bytes, uint64_t chunk_size) {
  return bytes / chunk_size + (bytes % chunk_size != 0 ? 1 : 0);
}

Status MalformedTail(const char* what) {
  return Status::Corruption(std::string("tail of a fragment: ") + what);
}

}  // namespace

void FragmentChecksums::Add(const char* chunk, size_t n) {
  assert(n <= chunk_size && bytes == chunks.size() * chunk_size);
  chunks.push_back(Crc32c(chunk, n));
  bytes += n;
}

bool FragmentChecksums::Matches(size_t chunk, const char* data) const {
  return Crc32c(data, ChunkBytes(chunk)) == chunks[chunk];
}

uint64_t FragmentTailBytes(uint64_t fragment_bytes, uint64_t chunk_size) {
  return kTailFixedBytes + Chunks(fragment_bytes, chunk_size) * kCrcBytes + kCrcBytes;
}

uint64_t FragmentCapacity(uint64_t extent_bytes, uint64_t chunk_size) {
  constexpr uint64_t kFixed = kFragmentHeadBytes + kTailFixedBytes + kCrcBytes;
  if (extent_bytes <= kFixed) return 0;
  const uint64_t room = extent_bytes - kFixed;
  const uint64_t whole = room / (chunk_size + kCrcBytes);
  const uint64_t rest = room % (chunk_size + kCrcBytes);
  return whole * chunk_size + (rest > kCrcBytes ? rest - kCrcBytes : 0);
}

void EncodeFragmentTail(const FragmentChecksums& checksums, std::string* dst) {
  assert(checksums.chunks.size() == Chunks(checksums.bytes, checksums.chunk_size));
  const size_t start = dst->size();
  dst->resize(start + kTailFixedBytes);
  char* const fixed = dst->data() + start;
  EncodeFixed32(fixed + kTailMagicAt, kTailMagic);
  EncodeFixed16(fixed + kTailVersionAt, kTailFormatVersion);
  EncodeFixed16(fixed + kFragmentAt, static_cast<uint16_t>(checksums.fragment));
  EncodeFixed64(fixed + kTableIdAt, checksums.table_id);
  EncodeFixed64(fixed + kTailBytesAt, checksums.bytes);
  EncodeFixed64(fixed + kChunkSizeAt, checksums.chunk_size);
  for (const uint32_t crc : checksums.chunks) PutFixed32(dst, crc);
  PutFixed32(dst, Crc32c(dst->data() + start, dst->size() - start));
}

Status DecodeFragmentTail(const Slice& tail, const FragmentIdentity& identity,
                          FragmentChecksums* checksums) {
  if (tail.size() < kTailFixedBytes + kCrcBytes) return MalformedTail("truncated");
  const char* const fixed = tail.data();
  if (DecodeFixed32(fixed + kTailMagicAt) != kTailMagic) return MalformedTail("wrong magic number");
  const uint64_t bytes = DecodeFixed64(fixed + kTailBytesAt);
  const uint64_t chunk_size = DecodeFixed64(fixed + kChunkSizeAt);
  if (chunk_size == 0) return MalformedTail("chunks of no bytes");
  const uint64_t count = Chunks(bytes, chunk_size);
  if (count > (tail.size() - kTailFixedBytes - kCrcBytes) / kCrcBytes) {
    return MalformedTail("truncated");
  }
  const char* const end = fixed + kTailFixedBytes + count * kCrcBytes;
  if (DecodeFixed32(end) != Crc32c(fixed, static_cast<size_t>(end - fixed))) {
    return MalformedTail("wrong checksum");
  }
  // The checksum is at the same place in any version, so this number can be believed.
  const uint16_t version = DecodeFixed16(fixed + kTailVersionAt);
  if (version != kTailFormatVersion) {
    return Status::NotSupported("tail of a fragment: format version " + std::to_string(version) +
                                ", this program reads " + std::to_string(kTailFormatVersion));
  }
  if (DecodeFixed64(fixed + kTableIdAt) != identity.table_id ||
      DecodeFixed16(fixed + kFragmentAt) != identity.fragment || bytes != identity.bytes) {
    return MalformedTail("it is another fragment's");
  }
  checksums->table_id = identity.table_id;
  checksums->fragment = identity.fragment;
  checksums->bytes = bytes;
  checksums->chunk_size = chunk_size;
  checksums->chunks.resize(count);
  for (size_t i = 0; i < count; ++i) {
    checksums->chunks[i] = DecodeFixed32(fixed + kTailFixedBytes + i * kCrcBytes);
  }
  return Status::OK();
}

}  // namespace nacre
