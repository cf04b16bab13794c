#include "table/format/table_meta.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include "table/format/table_seal.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"
#include "util/crypto/key_ring.h"

namespace nacre {
namespace {

// An encoded meta (little-endian; docs/formats.md). What is fixed comes first:
//
//     offset size
//          0    4  magic
//          4    2  format version
//          6    2  flags: 1 bounds are shortened, 2 last output of its merge, 4 operands,
//                  8 range tombstones
//          8    4  bytes of the whole, checksum included
//         12    4  id of the column family
//         16    8  table id
//         24    8  database id
//         32    8  manifest version
//         40    4  level
//         44    4  alignment shift
//         48    8  smallest sequence
//         56    8  largest sequence
//         64    8  entries
//         72    8  tombstones
//         80    8  distinct user keys
//         88    8  bytes of keys and values
//         96    8  bytes of the largest record
//        104    8  chunk size
//        112    8  bytes of the table
//        120  100  records, point index, range index, Bloom filter, lineage: each fixed64 offset,
//                  fixed64 length, fixed32 CRC32C
//        220    4  number among the outputs of its merge
//        224    1  redundancy kind
//        225    1  data fragments
//        226    1  parity fragments; of copies, those beyond the first
//        227    1  number of fragments
//        228  16n  fragments: fixed64 node << 48 | offset, fixed64 length
//                  comparator name, smallest, largest: each varint64 length and bytes; in version
//                  6 both bounds are sealed
//              20  with flag 8: the range tombstones, a section as above
//                  in version 6: ID of the key, salt, each varint64 length and bytes
//                  fixed32 CRC32C of everything before
constexpr size_t kMetaMagicAt = 0;
constexpr size_t kMetaVersionAt = 4;
constexpr size_t kFlagsAt = 6;
constexpr size_t kMetaBytesAt = 8;
constexpr size_t kFamilyAt = 12;
constexpr size_t kNumbersAt = 16;
constexpr size_t kSectionsAt = 120;
constexpr size_t kSectionBytes = 20;
constexpr size_t kSections = 5;
constexpr size_t kPartAt = 220;
constexpr size_t kPlacementAt = 224;
constexpr size_t kMetaFixedBytes = 228;
constexpr size_t kFragmentBytes = 16;
static_assert(kSectionsAt + kSections * kSectionBytes == kPartAt);
static_assert(kPartAt + 4 == kPlacementAt);
static_assert(kPlacementAt + 4 == kMetaFixedBytes);
static_assert(kFragmentBytes == sizeof(ExtentAddr));

constexpr uint32_t kMetaMagic = 0x4d54434e;  // "NCTM"
constexpr uint16_t kMetaFormatVersion = 5;
constexpr uint16_t kSealedMetaFormatVersion = 6;
constexpr uint16_t kBoundsShortened = 1;
constexpr uint16_t kLastPart = 2;
constexpr uint16_t kHasOperands = 4;
constexpr uint16_t kHasRangeDeletions = 8;
constexpr uint16_t kFlags = kBoundsShortened | kLastPart | kHasOperands | kHasRangeDeletions;
constexpr uint64_t kFooterMagic = 0x3152544f4f46434e;  // "NCFOOTR1"
constexpr uint32_t kSealMagic = 0x4c53434e;            // "NCSL"
/// More than any key, name and placement together; a longer one is malformed.
constexpr uint32_t kMetaBytesMax = 1 << 30;
constexpr uint32_t kAlignmentShiftMax = 32;

uint64_t PackAddr(const RemoteAddr& addr) {
  return static_cast<uint64_t>(addr.node) << 48 | addr.offset;
}
RemoteAddr UnpackAddr(uint64_t packed) {
  RemoteAddr addr;
  addr.offset = packed & ((uint64_t{1} << 48) - 1);
  addr.node = packed >> 48;
  return addr;
}

/// Reads or writes the fixed-width fields in the one order that both directions share.
template <typename Meta, typename Field32, typename Field64, typename Section>
void ForEachField(Meta& meta, Field32 field32, Field64 field64, Section section) {
  field32(kFamilyAt, meta.family);
  size_t at = kNumbersAt;
  const auto next64 = [&](auto& value) {
    field64(at, value);
    at += 8;
  };
  next64(meta.id);
  next64(meta.database_id);
  next64(meta.manifest_version);
  field32(at, meta.level);
  field32(at + 4, meta.alignment_shift);
  at += 8;
  next64(meta.smallest_sequence);
  next64(meta.largest_sequence);
  next64(meta.entries);
  next64(meta.tombstones);
  next64(meta.user_keys);
  next64(meta.user_bytes);
  next64(meta.largest_record);
  next64(meta.chunk_size);
  next64(meta.size);
  assert(at == kSectionsAt);
  for (auto* part :
       {&meta.records, &meta.point_index, &meta.range_index, &meta.bloom, &meta.lineage}) {
    section(at, *part);
    at += kSectionBytes;
  }
  field32(at, meta.part);
}

void EncodeSection(const TableSection& part, char* to) {
  EncodeFixed64(to, part.offset);
  EncodeFixed64(to + 8, part.length);
  EncodeFixed32(to + 16, part.crc);
}

TableSection DecodeSection(const char* from) {
  return {.offset = DecodeFixed64(from),
          .length = DecodeFixed64(from + 8),
          .crc = DecodeFixed32(from + 16)};
}

Status MalformedMeta(const char* what) {
  return Status::Corruption(std::string("table meta: ") + what);
}

bool GetString(Slice* input, std::string* value) {
  Slice bytes;
  if (!GetLengthPrefixedSlice(input, &bytes)) return false;
  value->assign(bytes.data(), bytes.size());
  return true;
}

void EncodeSeal(const TableSeal& seal, std::string* dst) {
  PutLengthPrefixedSlice(dst, seal.key_id());
  PutLengthPrefixedSlice(dst, seal.salt());
}

/// With the bounds, which are sealed; empty: they are not known.
bool GetSeal(Slice* input, std::string smallest, std::string largest,
             std::shared_ptr<const TableSeal>* seal) {
  std::string key_id;
  std::string salt;
  if (!GetString(input, &key_id) || !GetString(input, &salt)) return false;
  if (!IsKeyId(key_id) || salt.size() != TableSeal::kSaltBytes) return false;
  *seal = std::make_shared<TableSeal>(std::move(key_id), std::move(salt), std::move(smallest),
                                      std::move(largest));
  return true;
}

}  // namespace

uint64_t TableMeta::plain_chunk_size() const {
  return sealed() ? PlainBytes(chunk_size) : chunk_size;
}

uint64_t TableMeta::plain_size() const { return sealed() ? PlainBytes(size) : size; }

Status CheckTableMeta(const TableMeta& meta) {
  const auto inside = [&](const TableSection& part) {
    const uint64_t size = meta.plain_size();
    return part.offset <= size && part.length <= size - part.offset;
  };
  if (!inside(meta.records) || !inside(meta.point_index) || !inside(meta.range_index) ||
      !inside(meta.bloom) || !inside(meta.range_deletions) || !inside(meta.lineage)) {
    return MalformedMeta("a section reaches beyond the table");
  }
  if (meta.records.offset != 0) return MalformedMeta("the records do not come first");
  if (meta.alignment_shift > kAlignmentShiftMax) {
    return MalformedMeta("alignment shift is too large");
  }
  if (meta.chunk_size == 0) return MalformedMeta("chunk size is zero");
  if (meta.sealed() && meta.chunk_size % kStoredCellBytes != 0) {
    return MalformedMeta("a chunk is no whole number of cells");
  }
  if (meta.records.length == 0) return MalformedMeta("there are no records");
  return Status::OK();
}

void EncodeTableMeta(const TableMeta& meta, std::string* dst) {
  const size_t start = dst->size();
  dst->resize(start + kMetaFixedBytes);
  char* const fixed = dst->data() + start;
  EncodeFixed32(fixed + kMetaMagicAt, kMetaMagic);
  EncodeFixed16(fixed + kMetaVersionAt,
                meta.sealed() ? kSealedMetaFormatVersion : kMetaFormatVersion);
  EncodeFixed16(fixed + kFlagsAt,
                static_cast<uint16_t>(
                    (meta.bounds_shortened && !meta.sealed() ? kBoundsShortened : 0) |
                    (meta.last_part ? kLastPart : 0) | (meta.has_operands ? kHasOperands : 0) |
                    (meta.has_range_deletions() ? kHasRangeDeletions : 0)));
  ForEachField(
      meta, [=](size_t at, uint32_t value) { EncodeFixed32(fixed + at, value); },
      [=](size_t at, uint64_t value) { EncodeFixed64(fixed + at, value); },
      [=](size_t at, const TableSection& part) { EncodeSection(part, fixed + at); });
  fixed[kPlacementAt] = static_cast<char>(meta.placement.redundancy.kind);
  fixed[kPlacementAt + 1] = static_cast<char>(meta.placement.redundancy.data);
  fixed[kPlacementAt + 2] = static_cast<char>(meta.placement.redundancy.parity);
  fixed[kPlacementAt + 3] = static_cast<char>(meta.placement.fragments.size());
  for (const ExtentAddr& fragment : meta.placement.fragments) {
    PutFixed64(dst, PackAddr(fragment.start));
    PutFixed64(dst, fragment.length);
  }
  PutLengthPrefixedSlice(dst, meta.comparator);
  PutLengthPrefixedSlice(dst, meta.sealed() ? meta.seal->smallest() : meta.smallest);
  PutLengthPrefixedSlice(dst, meta.sealed() ? meta.seal->largest() : meta.largest);
  if (meta.has_range_deletions()) {
    char section[kSectionBytes];
    EncodeSection(meta.range_deletions, section);
    dst->append(section, sizeof(section));
  }
  if (meta.sealed()) EncodeSeal(*meta.seal, dst);
  const size_t bytes = dst->size() - start + kCrcBytes;
  EncodeFixed32(dst->data() + start + kMetaBytesAt, static_cast<uint32_t>(bytes));
  PutFixed32(dst, Crc32c(dst->data() + start, bytes - kCrcBytes));
}

Status DecodeTableMeta(Slice* input, TableMeta* meta) {
  if (input->size() < kMetaFixedBytes + kCrcBytes) return MalformedMeta("truncated");
  const char* const fixed = input->data();
  if (DecodeFixed32(fixed + kMetaMagicAt) != kMetaMagic) return MalformedMeta("wrong magic number");
  const uint32_t bytes = DecodeFixed32(fixed + kMetaBytesAt);
  if (bytes < kMetaFixedBytes + kCrcBytes || bytes > kMetaBytesMax) {
    return MalformedMeta("absurd length");
  }
  if (bytes > input->size()) return MalformedMeta("truncated");
  if (DecodeFixed32(fixed + bytes - kCrcBytes) != Crc32c(fixed, bytes - kCrcBytes)) {
    return MalformedMeta("wrong checksum");
  }
  // The checksum holds for any version, so this number can be believed.
  const uint16_t version = DecodeFixed16(fixed + kMetaVersionAt);
  if (version > kSealedMetaFormatVersion) {
    return Status::NotSupported("table meta: format version " + std::to_string(version) +
                                " is newer than this program");
  }
  const bool sealed = version == kSealedMetaFormatVersion;
  if (!sealed && version != kMetaFormatVersion) {
    return Status::NotSupported("table meta: format version " + std::to_string(version) +
                                " is older than this program can read");
  }
  const uint16_t flags = DecodeFixed16(fixed + kFlagsAt);
  if ((flags & ~kFlags) != 0) return MalformedMeta("unknown flags");
  meta->bounds_shortened = (flags & kBoundsShortened) != 0;
  meta->last_part = (flags & kLastPart) != 0;
  meta->has_operands = (flags & kHasOperands) != 0;
  ForEachField(
      *meta, [=](size_t at, uint32_t& value) { value = DecodeFixed32(fixed + at); },
      [=](size_t at, uint64_t& value) { value = DecodeFixed64(fixed + at); },
      [=](size_t at, TableSection& part) { part = DecodeSection(fixed + at); });

  const auto kind = static_cast<uint8_t>(fixed[kPlacementAt]);
  meta->placement.redundancy = {.kind = static_cast<RedundancyKind>(kind),
                                .data = static_cast<uint8_t>(fixed[kPlacementAt + 1]),
                                .parity = static_cast<uint8_t>(fixed[kPlacementAt + 2])};
  meta->placement.chunk_size = meta->chunk_size;
  if (!IsValid(meta->placement.redundancy)) return MalformedMeta("unknown redundancy");
  const size_t fragments = static_cast<uint8_t>(fixed[kPlacementAt + 3]);
  if (fragments != 0 && fragments != static_cast<size_t>(meta->placement.redundancy.fragments())) {
    return MalformedMeta("fragments do not fit the redundancy");
  }
  Slice rest(fixed + kMetaFixedBytes, bytes - kMetaFixedBytes - kCrcBytes);
  if (rest.size() < fragments * kFragmentBytes) return MalformedMeta("truncated placement");
  meta->placement.fragments.resize(fragments);
  for (ExtentAddr& fragment : meta->placement.fragments) {
    fragment.start = UnpackAddr(DecodeFixed64(rest.data()));
    fragment.length = DecodeFixed64(rest.data() + 8);
    rest.remove_prefix(kFragmentBytes);
  }
  if (!GetString(&rest, &meta->comparator) || !GetString(&rest, &meta->smallest) ||
      !GetString(&rest, &meta->largest)) {
    return MalformedMeta("malformed bounds");
  }
  const bool has_range_deletions = (flags & kHasRangeDeletions) != 0;
  meta->range_deletions = TableSection();
  if (has_range_deletions) {
    if (rest.size() < kSectionBytes) return MalformedMeta("malformed bounds");
    meta->range_deletions = DecodeSection(rest.data());
    rest.remove_prefix(kSectionBytes);
  }
  meta->seal = nullptr;
  if (sealed) {
    if (!GetSeal(&rest, std::move(meta->smallest), std::move(meta->largest), &meta->seal)) {
      return MalformedMeta("malformed seal");
    }
    meta->smallest.assign(kTagBytes, '\0');
    meta->largest.assign(kTagBytes, '\0');
    meta->bounds_shortened = true;
  }
  if (!rest.empty()) return MalformedMeta("malformed bounds");
  if (has_range_deletions && !meta->has_range_deletions()) {
    return MalformedMeta("there are no range tombstones");
  }
  if (meta->smallest.size() < kTagBytes || meta->largest.size() < kTagBytes) {
    return MalformedMeta("a bound is shorter than a tag");
  }
  NACRE_RETURN_IF_ERROR(CheckTableMeta(*meta));
  input->remove_prefix(bytes);
  return Status::OK();
}

// ---- Footer -----------------------------------------------------------------------------------

void EncodeFooter(const TableMeta& meta, std::string* dst) {
  const size_t start = dst->size();
  EncodeTableMeta(meta, dst);
  char trailer[kFooterTrailerBytes];
  EncodeFixed32(trailer, static_cast<uint32_t>(dst->size() - start));
  EncodeFixed32(trailer + 4, Crc32c(trailer, 4));
  EncodeFixed64(trailer + 8, kFooterMagic);
  dst->append(trailer, sizeof(trailer));
}

size_t FooterBytes(const TableMeta& meta) {
  const auto string_bytes = [](size_t size) {
    return static_cast<size_t>(VarintLength(size)) + size;
  };
  const size_t tag = meta.sealed() ? Aead::kTagBytes : 0;
  const size_t seal =
      meta.sealed() ? string_bytes(meta.seal->key_id().size()) + string_bytes(TableSeal::kSaltBytes)
                    : 0;
  return kMetaFixedBytes + meta.placement.fragments.size() * kFragmentBytes +
         string_bytes(meta.comparator.size()) + string_bytes(meta.smallest.size() + tag) +
         string_bytes(meta.largest.size() + tag) +
         (meta.has_range_deletions() ? kSectionBytes : 0) + kCrcBytes + kFooterTrailerBytes + seal;
}

namespace {

/// One try: `*suspect` is how many bytes at the end of the table were looked at.
Status TryReadFooter(Extent* extent, TableMeta* meta, uint64_t* suspect) {
  // Long enough for nearly all footers; a longer one takes a second read.
  constexpr uint64_t kFirstRead = 4096;
  const uint64_t size = extent->size();
  if (size < kFooterTrailerBytes) return Status::Corruption("table footer: truncated");
  uint64_t wanted = std::min(size, kFirstRead);
  *suspect = wanted;
  std::unique_ptr<PendingRead> read = extent->StartRead(size - wanted, wanted);
  Slice end;
  NACRE_RETURN_IF_ERROR(read->Await(&end));

  const char* const trailer = end.end() - kFooterTrailerBytes;
  const uint32_t meta_bytes = DecodeFixed32(trailer);
  if (DecodeFixed64(trailer + 8) != kFooterMagic) {
    return Status::Corruption("table footer: wrong magic number");
  }
  if (DecodeFixed32(trailer + 4) != Crc32c(trailer, 4)) {
    return Status::Corruption("table footer: wrong checksum of its length");
  }
  if (meta_bytes > size - kFooterTrailerBytes) {
    return Status::Corruption("table footer: longer than the table");
  }
  wanted = meta_bytes + kFooterTrailerBytes;
  *suspect = wanted;
  if (wanted > end.size()) {
    read = extent->StartRead(size - wanted, wanted);
    NACRE_RETURN_IF_ERROR(read->Await(&end));
  }
  Slice encoded(end.end() - wanted, meta_bytes);
  NACRE_RETURN_IF_ERROR(DecodeTableMeta(&encoded, meta));
  if (!encoded.empty()) return Status::Corruption("table footer: bytes behind the meta");
  if (meta->plain_size() != size)
    return Status::Corruption("table footer: the table has another size");
  return Status::OK();
}

}  // namespace

Status ReadFooter(Extent* extent, TableMeta* meta) {
  for (DamagedRead damage;;) {
    uint64_t suspect = 0;
    Status status = TryReadFooter(extent, meta, &suspect);
    if (!status.IsCorruption()) return status;
    if (!damage.ReadAgain(extent, extent->size() - suspect, suspect)) return status;
  }
}

namespace {

/// Its bounds are shortened to their tags.
TableMeta WithoutUserKeys(const TableMeta& meta) {
  TableMeta head = meta;
  head.bounds_shortened = true;
  head.smallest = meta.smallest.substr(meta.smallest.size() - kTagBytes);
  head.largest = meta.largest.substr(meta.largest.size() - kTagBytes);
  return head;
}

}  // namespace

Status EncodeFragmentHead(const TableMeta& meta, std::string* dst) {
  if (meta.sealed()) {
    TableMeta head = WithoutUserKeys(meta);
    head.seal = nullptr;
    NACRE_RETURN_IF_ERROR(EncodeFragmentHead(head, dst));
    std::string seal;
    PutFixed32(&seal, kSealMagic);
    EncodeSeal(*meta.seal, &seal);
    PutFixed32(&seal, Crc32c(seal.data(), seal.size()));
    dst->append(seal);
    if (dst->size() <= kFragmentHeadBytes) return Status::OK();
    return Status::InvalidArgument("comparator name of " + std::to_string(meta.comparator.size()) +
                                   " bytes is too long for the head of an encrypted table");
  }
  const size_t whole = FooterBytes(meta) - kFooterTrailerBytes;
  if (whole <= kFragmentHeadBytes) {
    EncodeTableMeta(meta, dst);
    return Status::OK();
  }
  // Both bounds keep their tags and share the room that is left for user keys.
  TableMeta head = WithoutUserKeys(meta);
  // A length of that many bytes takes one byte more than that of a tag alone.
  const size_t least = FooterBytes(head) - kFooterTrailerBytes + 2;
  if (least > kFragmentHeadBytes) {
    return Status::InvalidArgument("comparator name of " + std::to_string(meta.comparator.size()) +
                                   " bytes is too long for a table's head");
  }
  const size_t each = (kFragmentHeadBytes - least) / 2;
  head.smallest.insert(0, meta.smallest_user_key().ToString(), 0, each);
  head.largest.insert(0, meta.largest_user_key().ToString(), 0, each);
  EncodeTableMeta(head, dst);
  return Status::OK();
}

Status DecodeFragmentHead(const Slice& bytes, TableMeta* meta) {
  Slice input = bytes;
  NACRE_RETURN_IF_ERROR(DecodeTableMeta(&input, meta));
  const Slice seal = input;
  if (input.size() < sizeof(kSealMagic) || DecodeFixed32(input.data()) != kSealMagic) {
    return Status::OK();
  }
  input.remove_prefix(sizeof(kSealMagic));
  TableMeta sealed = *meta;
  if (!GetSeal(&input, {}, {}, &sealed.seal) || input.size() < kCrcBytes) return Status::OK();
  const auto covered = static_cast<size_t>(input.data() - seal.data());
  if (DecodeFixed32(input.data()) != Crc32c(seal.data(), covered)) return Status::OK();
  NACRE_RETURN_IF_ERROR(CheckTableMeta(sealed));
  *meta = std::move(sealed);
  return Status::OK();
}

}  // namespace nacre
