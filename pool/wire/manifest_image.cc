#include "pool/wire/manifest_image.h"

#include <fmt/format.h>
#include <lz4.h>

#include <atomic>
#include <cassert>
#include <cstring>
#include <memory>

#include "util/codes/crc32c.h"
#include "util/coding.h"
#include "util/named_point.h"

namespace nacre::pool {
namespace {

// A header (little-endian; docs/formats.md, "Manifest"):
//
//     offset size
//          0    8  magic
//          8    4  format version
//         12    4  CRC32C of all 256 bytes, this field zero
//         16    8  database id
//         24    8  epoch
//         32    8  version of the image
//         40    8  version that is being applied; 0: none
//         48    4  generation
//         52    4  bytes of a slot
//         56    4  slots
//         60    4  slots used
constexpr size_t kCrcAt = 12;
constexpr uint64_t kMagic = 0x31664e614d72434eULL;  // "NCrMaNf1"
constexpr uint32_t kFormatVersion = 1;
constexpr uint32_t kMaxSlotBytes = 64 << 10;

// A delta, unpacked: fixed32 number of slots, then for each fixed32 slot (with kWhole or not) and
// fixed32 CRC32C of what it holds afterwards, then for each the XOR with what it held, or, with
// kWhole, what it holds: of a slot that has become free, whose zeros take no room, not the old
// bytes.
constexpr size_t kCountBytes = 4;
constexpr size_t kEntryBytes = 8;
constexpr uint32_t kWhole = uint32_t{1} << 31;
constexpr uint64_t kMaxRawBytes = uint64_t{1} << 30;
static_assert(kMaxRawBytes <= LZ4_MAX_INPUT_SIZE);

void Xor(const char* other, size_t n, char* bytes) {
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<char>(bytes[i] ^ other[i]);
}

/// Whether a slot takes less room whole than as its changes: LZ4 leaves little of zeros.
bool IsSmallerWhole(const SlotChange& change) {
  ptrdiff_t zeros = 0;
  for (size_t i = 0; i < change.before.size(); ++i) {
    zeros += (change.after[i] == 0) - (change.after[i] == change.before[i]);
  }
  return zeros > 0;
}

Status Damaged(std::string_view what) {
  return Status::Corruption(fmt::format("image update: {}", what));
}

Status Unpack(const ImageDelta& delta, std::unique_ptr<char[]>* raw) {
  if (Crc32c(delta.compressed.data(), delta.compressed.size()) != delta.crc) {
    return Damaged("wrong checksum");
  }
  if (delta.raw_bytes < kCountBytes || delta.raw_bytes > kMaxRawBytes) {
    return Damaged("absurd length");
  }
  if (delta.compressed.size() > static_cast<size_t>(LZ4_COMPRESSBOUND(kMaxRawBytes))) {
    return Damaged("absurd length");
  }
  *raw = std::make_unique_for_overwrite<char[]>(delta.raw_bytes);
  const int unpacked = LZ4_decompress_safe(delta.compressed.data(), raw->get(),
                                           static_cast<int>(delta.compressed.size()),
                                           static_cast<int>(delta.raw_bytes));
  if (unpacked < 0 || static_cast<uint32_t>(unpacked) != delta.raw_bytes) {
    return Damaged("cannot be unpacked");
  }
  return Status::OK();
}

/// The slots of an unpacked delta.
struct Changes {
  uint32_t count = 0;
  size_t slot_bytes = 0;
  const char* entries = nullptr;
  char* contents = nullptr;  ///< XORs; once checked, what the slots are to hold.

  uint32_t slot(uint32_t i) const { return DecodeFixed32(entries + i * kEntryBytes) & ~kWhole; }
  bool whole(uint32_t i) const { return (DecodeFixed32(entries + i * kEntryBytes) & kWhole) != 0; }
  uint32_t crc(uint32_t i) const { return DecodeFixed32(entries + i * kEntryBytes + 4); }
  char* content(uint32_t i) const { return contents + i * slot_bytes; }
};

Status Parse(const ImageHeader& header, const ImageDelta& delta, char* raw, Changes* changes) {
  changes->count = DecodeFixed32(raw);
  changes->slot_bytes = header.slot_bytes;
  const uint64_t expected =
      kCountBytes + uint64_t{changes->count} * (kEntryBytes + uint64_t{header.slot_bytes});
  if (expected != delta.raw_bytes) return Damaged("slots of another size");
  changes->entries = raw + kCountBytes;
  changes->contents = raw + kCountBytes + changes->count * kEntryBytes;
  return Status::OK();
}

/// A redo: the header as it is to be, fixed32 number of slots, then for each its entry, as in a
/// delta, and then for each what it is to hold.
constexpr size_t kRedoHeadBytes = ImageHeader::kBytes + kCountBytes;

std::string EncodeRedo(const ImageHeader& after, const Changes& changes) {
  std::string redo(ImageHeader::kBytes, '\0');
  after.Encode(redo.data());
  PutFixed32(&redo, changes.count);
  redo.append(changes.entries, changes.count * kEntryBytes);
  redo.append(changes.contents, changes.count * changes.slot_bytes);
  return redo;
}

/// Turns XORs into contents, and compares these with their checksums.
Status MakeContents(const ImageHeader& header, const ImageDelta& delta, const char* slots,
                    Changes* changes) {
  if (delta.slots_used < header.slots_used || delta.slots_used > header.image_slots) {
    return Damaged(fmt::format("{} slots used of {}, before {}", delta.slots_used,
                               header.image_slots, header.slots_used));
  }
  uint32_t next = 0;        // Slots are in order.
  uint32_t first_used = 0;  // Each slot from here on that comes into use has to be in the delta.
  for (uint32_t i = 0; i < changes->count; ++i) {
    const uint32_t slot = changes->slot(i);
    if (slot < next || slot >= delta.slots_used) return Damaged(fmt::format("slot {}", slot));
    next = slot + 1;
    if (slot >= header.slots_used) {
      ++first_used;
    } else if (!changes->whole(i)) {
      Xor(slots + uint64_t{slot} * changes->slot_bytes, changes->slot_bytes, changes->content(i));
    }
    if (Crc32c(changes->content(i), changes->slot_bytes) != changes->crc(i)) {
      return Damaged(
          fmt::format("slot {} of the copy at version {} is damaged", slot, header.version));
    }
  }
  if (first_used != delta.slots_used - header.slots_used) return Damaged("slots are missing");
  return Status::OK();
}

}  // namespace

void ImageHeader::Encode(char* dst) const {
  std::memset(dst, 0, kBytes);
  EncodeFixed64(dst, kMagic);
  EncodeFixed32(dst + 8, kFormatVersion);
  EncodeFixed64(dst + 16, identity.database_id);
  EncodeFixed64(dst + 24, identity.epoch);
  EncodeFixed64(dst + 32, version);
  EncodeFixed64(dst + 40, applying);
  EncodeFixed32(dst + 48, identity.generation);
  EncodeFixed32(dst + 52, slot_bytes);
  EncodeFixed32(dst + 56, image_slots);
  EncodeFixed32(dst + 60, slots_used);
  EncodeFixed32(dst + kCrcAt, Crc32c(dst, kBytes));
}

Status ImageHeader::Decode(const Slice& bytes, ImageHeader* header) {
  if (bytes.size() < kBytes) return Status::Corruption("manifest copy: truncated");
  char copy[kBytes];
  std::memcpy(copy, bytes.data(), kBytes);
  if (DecodeFixed64(copy) != kMagic) return Status::Corruption("manifest copy: wrong magic");
  const uint32_t crc = DecodeFixed32(copy + kCrcAt);
  EncodeFixed32(copy + kCrcAt, 0);
  if (Crc32c(copy, kBytes) != crc) return Status::Corruption("manifest copy: wrong checksum");
  const uint32_t format = DecodeFixed32(copy + 8);
  if (format > kFormatVersion) {
    return Status::NotSupported(
        fmt::format("manifest copy: format version {} is newer than this program", format));
  }
  header->identity = {.database_id = DecodeFixed64(copy + 16),
                      .epoch = DecodeFixed64(copy + 24),
                      .generation = DecodeFixed32(copy + 48)};
  header->version = DecodeFixed64(copy + 32);
  header->applying = DecodeFixed64(copy + 40);
  header->slot_bytes = DecodeFixed32(copy + 52);
  header->image_slots = DecodeFixed32(copy + 56);
  header->slots_used = DecodeFixed32(copy + 60);
  if (format != kFormatVersion || header->slot_bytes == 0 || header->slot_bytes > kMaxSlotBytes ||
      header->slots_used > header->image_slots) {
    return Status::Corruption("manifest copy: malformed");
  }
  return Status::OK();
}

Status PackChanges(const std::vector<SlotChange>& changes, size_t slot_bytes, ImageDelta* delta) {
  const uint64_t raw_bytes = kCountBytes + changes.size() * (kEntryBytes + slot_bytes);
  if (raw_bytes > kMaxRawBytes) {
    return Status::InvalidArgument(fmt::format("image update: {} bytes are too many", raw_bytes));
  }
  std::string raw;
  raw.reserve(raw_bytes);
  PutFixed32(&raw, static_cast<uint32_t>(changes.size()));
  for (const SlotChange& change : changes) {
    PutFixed32(&raw, change.slot | (IsSmallerWhole(change) ? kWhole : 0));
    PutFixed32(&raw, Crc32c(change.after.data(), change.after.size()));
  }
  for (const SlotChange& change : changes) {
    assert(change.after.size() == slot_bytes);
    raw.append(change.after);
    if (!change.before.empty() && !IsSmallerWhole(change)) {
      Xor(change.before.data(), slot_bytes, raw.data() + raw.size() - slot_bytes);
    }
  }
  delta->compressed.resize(static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw.size()))));
  const int packed =
      LZ4_compress_default(raw.data(), delta->compressed.data(), static_cast<int>(raw.size()),
                           static_cast<int>(delta->compressed.size()));
  assert(packed > 0);
  delta->compressed.resize(static_cast<size_t>(packed));
  delta->raw_bytes = static_cast<uint32_t>(raw.size());
  delta->crc = Crc32c(delta->compressed.data(), delta->compressed.size());
  return Status::OK();
}

Status ApplyImageUpdate(const ImageDelta& delta, char* copy, uint64_t length,
                        const RecordRedo& record) {
  ImageHeader header;
  NACRE_RETURN_IF_ERROR(ImageHeader::Decode(Slice(copy, length), &header));
  if (header.identity != delta.identity) {
    return Status::InvalidArgument("image update: the copy is of another manifest");
  }
  if (uint64_t{header.image_slots} * header.slot_bytes > length - ImageHeader::kBytes) {
    return Damaged("the copy does not fit its extent");
  }
  if (header.applying != 0) return Damaged("the copy was left half changed");
  if (header.version == delta.version) return Status::OK();
  if (header.version != delta.base_version) {
    return Status::InvalidArgument(fmt::format("image update: from version {}, of a copy at {}",
                                               delta.base_version, header.version));
  }
  const uint64_t most =
      kCountBytes + header.image_slots * (kEntryBytes + uint64_t{header.slot_bytes});
  if (delta.raw_bytes > most) return Damaged("absurd length");
  std::unique_ptr<char[]> raw;
  NACRE_RETURN_IF_ERROR(Unpack(delta, &raw));
  Changes changes;
  NACRE_RETURN_IF_ERROR(Parse(header, delta, raw.get(), &changes));
  char* const slots = copy + ImageHeader::kBytes;
  NACRE_RETURN_IF_ERROR(MakeContents(header, delta, slots, &changes));

  NACRE_POINT("node.image-unpacked");
  ImageHeader after = header;
  after.version = delta.version;
  after.slots_used = delta.slots_used;
  if (record != nullptr) NACRE_RETURN_IF_ERROR(record(EncodeRedo(after, changes)));
  // A remote reader of the replica sees that it is being changed.
  header.applying = delta.version;
  header.Encode(copy);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (uint32_t i = 0; i < changes.count; ++i) {
    std::memcpy(slots + uint64_t{changes.slot(i)} * changes.slot_bytes, changes.content(i),
                changes.slot_bytes);
    if (i == 0) NACRE_POINT("node.image-half-applied");
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  after.Encode(copy);
  NACRE_POINT("node.image-applied");
  return Status::OK();
}

Status RedoImageUpdate(const Slice& redo, char* copy, uint64_t length) {
  const Status damaged = Damaged("what was recorded of it makes no sense");
  ImageHeader after;
  NACRE_RETURN_IF_ERROR(ImageHeader::Decode(redo, &after));
  if (redo.size() < kRedoHeadBytes || length < ImageHeader::kBytes) return damaged;
  const uint64_t count = DecodeFixed32(redo.data() + ImageHeader::kBytes);
  if (redo.size() != kRedoHeadBytes + count * (kEntryBytes + uint64_t{after.slot_bytes}) ||
      uint64_t{after.image_slots} * after.slot_bytes > length - ImageHeader::kBytes) {
    return damaged;
  }
  const char* const entries = redo.data() + kRedoHeadBytes;
  const char* const contents = entries + count * kEntryBytes;
  const auto slot = [&](uint64_t i) { return DecodeFixed32(entries + i * kEntryBytes) & ~kWhole; };
  for (uint64_t i = 0; i < count; ++i) {
    if (slot(i) >= after.slots_used) return damaged;
  }
  for (uint64_t i = 0; i < count; ++i) {
    std::memcpy(copy + ImageHeader::kBytes + uint64_t{slot(i)} * after.slot_bytes,
                contents + i * after.slot_bytes, after.slot_bytes);
  }
  after.Encode(copy);
  return Status::OK();
}

}  // namespace nacre::pool
