#include "db/manifest/manifest_ring.h"

#include <array>
#include <cstring>

#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {
namespace {

// An entry (little-endian; docs/formats.md, "Manifest"):
//
//     offset size
//          0    4  CRC32C of the other bytes of this header, seeded
//          4    4  kind: 1 edit, 2 marker
//          8    8  epoch of the manifest
//         16    8  version
//         24    4  bytes of the edit
//         28    4  CRC32C of the edit, seeded
//         32    n  the edit
//                  fixed64: the version, all bits inverted; zeros up to a multiple of 32
constexpr uint32_t kEdit = 1;
constexpr uint32_t kMarker = 2;

/// CRC32C of the identity: entries of another manifest do not match it.
uint32_t SeedOf(const pool::ManifestIdentity& identity) {
  std::string bytes;
  PutFixed64(&bytes, identity.database_id);
  PutFixed64(&bytes, identity.epoch);
  PutFixed32(&bytes, identity.generation);
  return Crc32c(bytes.data(), bytes.size());
}

/// Whether `header` is a terminator, or one over which a header was begun.
bool HasNoEnd(const char* header) {
  constexpr size_t kLengthAt = 24;
  static constexpr std::array<char, ManifestRing::kHeaderBytes - kLengthAt> kZeros{};
  return std::memcmp(header + kLengthAt, kZeros.data(), kZeros.size()) == 0;
}

}  // namespace

ManifestRing::ManifestRing(const pool::ManifestIdentity& identity)
    : epoch_(identity.epoch), seed_(SeedOf(identity)) {}

void ManifestRing::EncodeHeader(uint32_t kind, uint64_t version, const Slice& edit,
                                char* dst) const {
  EncodeFixed32(dst + 4, kind);
  EncodeFixed64(dst + 8, epoch_);
  EncodeFixed64(dst + 16, version);
  EncodeFixed32(dst + 24, static_cast<uint32_t>(edit.size()));
  EncodeFixed32(dst + 28, Crc32c(edit.data(), edit.size(), seed_));
  EncodeFixed32(dst, Crc32c(dst + 4, kHeaderBytes - 4, seed_));
}

void ManifestRing::EncodeEntry(uint64_t version, const Slice& edit, std::string* dst) const {
  const size_t start = dst->size();
  const size_t bytes = EntryBytes(edit.size());
  dst->resize(start + bytes + kTerminatorBytes);
  char* const entry = dst->data() + start;
  EncodeHeader(kEdit, version, edit, entry);
  std::memcpy(entry + kHeaderBytes, edit.data(), edit.size());
  EncodeFixed64(entry + kHeaderBytes + edit.size(), ~version);
}

void ManifestRing::EncodeWrap(uint64_t version, std::string* dst) const {
  const size_t start = dst->size();
  dst->resize(start + kHeaderBytes);
  EncodeHeader(kMarker, version, Slice(), dst->data() + start);
}

ManifestRing::Entry ManifestRing::Read(const Slice& ring, uint64_t position,
                                       uint64_t version) const {
  if (position % kAlignment != 0 || position > ring.size() ||
      ring.size() - position < kHeaderBytes) {
    return {.found = Found::kDamage};
  }
  const char* const entry = ring.data() + position;
  if (DecodeFixed32(entry) != Crc32c(entry + 4, kHeaderBytes - 4, seed_) ||
      DecodeFixed64(entry + 8) != epoch_) {
    return {.found = HasNoEnd(entry) ? Found::kNothing : Found::kDamage};
  }
  const uint64_t found_version = DecodeFixed64(entry + 16);
  if (found_version < version) return {.found = Found::kNothing};
  if (found_version > version) return {.found = Found::kDamage};
  const uint32_t kind = DecodeFixed32(entry + 4);
  if (kind == kMarker) return {.found = Found::kWrap};
  const uint64_t edit_bytes = DecodeFixed32(entry + 24);
  const uint64_t bytes = EntryBytes(edit_bytes);
  if (kind != kEdit || bytes + kTerminatorBytes > ring.size() - position) {
    return {.found = Found::kDamage};
  }
  const Slice edit(entry + kHeaderBytes, edit_bytes);
  if (Crc32c(edit.data(), edit.size(), seed_) == DecodeFixed32(entry + 28)) {
    return {.found = Found::kEntry, .edit = edit, .next = position + bytes};
  }
  // The last bytes are written last: with them, the entry was whole once.
  const bool was_whole = DecodeFixed64(edit.end()) == ~version;
  return {.found = was_whole ? Found::kDamage : Found::kNothing};
}

}  // namespace nacre
