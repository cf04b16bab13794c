#include "db/manifest/manifest_root.h"

#include "db/manifest/manifest_ring.h"
#include "db/manifest/manifest_slots.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {
namespace {

// Layout (little-endian; docs/formats.md, "Manifest"):
//
//     offset size
//          0    4  magic
//          4    4  format version
//          8    8  database id
//         16    8  epoch
//         24    4  generation
//         28    4  bytes of a slot
//         32    4  slots
//         36    4  number of replicas n
//         40    8  bytes of the ring
//         48    8  format 2: features
//              24n  for each replica: fixed64 instance id of its node, offset, length
//               4  CRC32C of everything before
//
// Format 2 is that of databases with features (Feature::kRootFeatures): releases that do not know
// features refuse it.
constexpr uint32_t kRootMagic = 0x54524d4e;  // "NMRT"
constexpr uint32_t kRootFormatVersion = 2;
constexpr uint32_t kFormatWithoutFeatures = 1;
constexpr size_t kFixedBytes = 48;
constexpr size_t kReplicaBytes = 24;
constexpr uint64_t kMaxBytes = uint64_t{1} << 48;  ///< Bounds a node's region.

Status MalformedRoot(std::string_view what) {
  return Status::Corruption("manifest root: " + std::string(what));
}

}  // namespace

std::string EncodeManifestRoot(const ManifestRoot& root) {
  std::string out;
  PutFixed32(&out, kRootMagic);
  PutFixed32(&out, root.features == 0 ? kFormatWithoutFeatures : kRootFormatVersion);
  PutFixed64(&out, root.identity.database_id);
  PutFixed64(&out, root.identity.epoch);
  PutFixed32(&out, root.identity.generation);
  PutFixed32(&out, root.slot_bytes);
  PutFixed32(&out, root.image_slots);
  PutFixed32(&out, static_cast<uint32_t>(root.replicas.size()));
  PutFixed64(&out, root.ring_bytes);
  if (root.features != 0) PutFixed64(&out, root.features);
  for (const ManifestRoot::Replica& replica : root.replicas) {
    PutFixed64(&out, replica.instance_id);
    PutFixed64(&out, replica.offset);
    PutFixed64(&out, replica.length);
  }
  PutFixed32(&out, Crc32c(out.data(), out.size()));
  return out;
}

Status DecodeManifestRoot(const Slice& bytes, ManifestRoot* root, pool::FeatureSet known) {
  if (bytes.size() < kFixedBytes + sizeof(uint32_t)) return MalformedRoot("truncated");
  const char* const p = bytes.data();
  if (DecodeFixed32(p) != kRootMagic) return MalformedRoot("wrong magic");
  const size_t body = bytes.size() - sizeof(uint32_t);
  if (DecodeFixed32(p + body) != Crc32c(p, body)) return MalformedRoot("wrong checksum");
  const uint32_t format = DecodeFixed32(p + 4);
  if (format > kRootFormatVersion) {
    return Status::NotSupported("manifest root: format version " + std::to_string(format) +
                                " is newer than this program");
  }
  root->identity = {.database_id = DecodeFixed64(p + 8),
                    .epoch = DecodeFixed64(p + 16),
                    .generation = DecodeFixed32(p + 24)};
  root->slot_bytes = DecodeFixed32(p + 28);
  root->image_slots = DecodeFixed32(p + 32);
  const uint64_t replicas = DecodeFixed32(p + 36);
  root->ring_bytes = DecodeFixed64(p + 40);
  size_t fixed = kFixedBytes;
  root->features = 0;
  if (format == kRootFormatVersion) {
    fixed += sizeof(uint64_t);
    if (body < fixed) return MalformedRoot("truncated");
    root->features = DecodeFixed64(p + kFixedBytes);
    if (root->features == 0) return MalformedRoot("no features");
    if (const pool::FeatureSet unknown = root->features & ~known; unknown != 0) {
      return Status::NotSupported("manifest root: the database may use " + pool::ToString(unknown) +
                                  ", which this release does not know");
    }
  }
  if (format < kFormatWithoutFeatures || root->slot_bytes != ManifestSlots::kSlotBytes ||
      root->image_slots == 0 || root->ring_bytes % ManifestRing::kAlignment != 0 ||
      root->ring_bytes < ManifestRing::kHeaderBytes || root->ring_bytes > kMaxBytes ||
      replicas == 0 || body != fixed + replicas * kReplicaBytes) {
    return MalformedRoot("malformed");
  }
  root->replicas.resize(replicas);
  const char* at = p + fixed;
  for (ManifestRoot::Replica& replica : root->replicas) {
    replica = {.instance_id = DecodeFixed64(at),
               .offset = DecodeFixed64(at + 8),
               .length = DecodeFixed64(at + 16)};
    at += kReplicaBytes;
    if (replica.offset >= kMaxBytes || replica.length > kMaxBytes ||
        replica.length < root->bytes()) {
      return MalformedRoot("a replica does not fit its extent");
    }
  }
  return Status::OK();
}

}  // namespace nacre
