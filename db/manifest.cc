#include "db/manifest.h"

#include "util/coding.h"
#include "util/crc32c.h"

namespace nacre {

namespace {

// Layout (docs/formats.md, "Manifest image"):
//
//     fixed32  magic "NMAN"
//     fixed32  format version
//     ...      the fields below as varints and length-prefixed strings
//     fixed32  CRC32C of everything before it
constexpr uint32_t kMagic = 0x4e414d4e;
constexpr uint32_t kFormatVersion = 2;

}  // namespace

std::string EncodeManifest(const ManifestImage& image) {
  std::string out;
  PutFixed32(&out, kMagic);
  PutFixed32(&out, kFormatVersion);
  PutLengthPrefixedSlice(&out, image.comparator);
  PutVarint64(&out, image.manifest_version);
  PutVarint64(&out, image.next_table_id);
  PutVarint64(&out, image.last_sequence);
  PutVarint32(&out, image.num_levels);
  PutVarint64(&out, image.slab_bytes);
  PutVarint64(&out, image.nodes.size());
  for (const auto& [node, instance_id] : image.nodes) {
    PutVarint32(&out, node);
    PutFixed64(&out, instance_id);
  }
  PutVarint64(&out, image.tables.size());
  for (const auto& [level, meta] : image.tables) {
    PutVarint32(&out, level);
    EncodeTableMeta(meta, &out);
  }
  PutFixed32(&out, Crc32c(out.data(), out.size()));
  return out;
}

Status DecodeManifest(const Slice& bytes, ManifestImage* image) {
  constexpr size_t kFrame = 12;  // Magic, version, checksum.
  if (bytes.size() < kFrame) return Status::Corruption("manifest: truncated");
  if (DecodeFixed32(bytes.data()) != kMagic) return Status::Corruption("manifest: wrong magic");
  const size_t body = bytes.size() - sizeof(uint32_t);
  if (DecodeFixed32(bytes.data() + body) != Crc32c(bytes.data(), body)) {
    return Status::Corruption("manifest: checksum mismatch");
  }
  const uint32_t version = DecodeFixed32(bytes.data() + 4);
  if (version != kFormatVersion) {
    return Status::NotSupported("manifest: format version " + std::to_string(version) +
                                ", this build reads " + std::to_string(kFormatVersion));
  }
  Slice input(bytes.data() + 8, body - 8);
  const Status malformed = Status::Corruption("manifest: malformed");
  Slice comparator;
  uint64_t nodes = 0;
  if (!GetLengthPrefixedSlice(&input, &comparator) ||
      !GetVarint64(&input, &image->manifest_version) ||
      !GetVarint64(&input, &image->next_table_id) || !GetVarint64(&input, &image->last_sequence) ||
      !GetVarint32(&input, &image->num_levels) || !GetVarint64(&input, &image->slab_bytes) ||
      !GetVarint64(&input, &nodes)) {
    return malformed;
  }
  image->comparator = comparator.ToString();
  for (uint64_t i = 0; i < nodes; ++i) {
    uint32_t node = 0;
    uint64_t instance_id = 0;
    if (!GetVarint32(&input, &node) || node >= kLostNode || !GetFixed64(&input, &instance_id) ||
        !image->nodes.emplace(node, instance_id).second) {
      return malformed;
    }
  }
  uint64_t tables = 0;
  if (!GetVarint64(&input, &tables)) return malformed;
  for (uint64_t i = 0; i < tables; ++i) {
    uint32_t level = 0;
    TableMeta meta;
    if (!GetVarint32(&input, &level) || level >= image->num_levels) return malformed;
    NACRE_RETURN_IF_ERROR(DecodeTableMeta(&input, &meta));
    image->tables.emplace_back(level, std::move(meta));
  }
  return input.empty() ? Status::OK() : malformed;
}

}  // namespace nacre
