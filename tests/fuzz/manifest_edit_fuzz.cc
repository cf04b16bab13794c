// What recovery reads of a manifest, as arbitrary bytes: edits, entries of the ring, slots, heads
// of copies, roots. What is accepted as an edit must encode to one that means the same. Checksums
// are made right where they can be, or nothing behind them would ever be reached.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "db/manifest/manifest_edit.h"
#include "db/manifest/manifest_ring.h"
#include "db/manifest/manifest_root.h"
#include "db/manifest/manifest_slots.h"
#include "db/manifest/manifest_state.h"
#include "pool/wire/manifest_image.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace {

using nacre::Slice;

void DecodeEdit(const Slice& bytes) {
  nacre::ManifestEdit edit;
  if (!nacre::DecodeManifestEdit(bytes, &edit).ok()) return;
  std::string once;
  nacre::EncodeManifestEdit(edit, &once);
  nacre::ManifestEdit again;
  if (!nacre::DecodeManifestEdit(once, &again).ok()) abort();
  std::string twice;
  nacre::EncodeManifestEdit(again, &twice);
  if (once != twice) abort();
  nacre::ManifestState state;
  state.num_levels = 7;
  edit.version = 1;
  if (!state.Apply(edit).ok()) return;
  // An image takes what a state takes.
  nacre::ManifestState empty;
  empty.num_levels = 7;
  nacre::ManifestSlots slots(empty, 0);
  slots.Apply(edit);
  slots.Seal(state, 0);
  std::vector<const char*> pointers;
  for (uint32_t slot = 0; slot < slots.used(); ++slot) {
    pointers.push_back(slots.image().slot(slot));
  }
  uint64_t position = 0;
  if (!nacre::ManifestSlotReader::Decode(pointers, &empty, &position).ok()) abort();
}

void DecodeSlots(std::string bytes) {
  constexpr size_t kSlotBytes = nacre::ManifestSlots::kSlotBytes;
  bytes.resize(bytes.size() / kSlotBytes * kSlotBytes);
  std::vector<const char*> slots;
  for (size_t at = 0; at < bytes.size(); at += kSlotBytes) {
    nacre::EncodeFixed32(bytes.data() + at, nacre::Crc32c(bytes.data() + at + 4, kSlotBytes - 4));
    slots.push_back(bytes.data() + at);
    if (!nacre::ManifestSlotReader::IsWhole(slots.back())) abort();
  }
  nacre::ManifestState state;
  uint64_t position = 0;
  nacre::ManifestSlotReader::Decode(slots, &state, &position).IgnoreError();
}

void Apply(const std::string& bytes) {
  using nacre::pool::ImageHeader;
  nacre::pool::ImageDelta delta{.slots_used = 4, .compressed = bytes};
  delta.version = 1;
  delta.crc = nacre::Crc32c(bytes.data(), bytes.size());
  std::string copy(ImageHeader::kBytes + 8 * nacre::ManifestSlots::kSlotBytes, '\0');
  const ImageHeader header{
      .slot_bytes = nacre::ManifestSlots::kSlotBytes, .image_slots = 8, .slots_used = 2};
  header.Encode(copy.data());
  for (const uint32_t slots : {2U, 3U}) {
    delta.raw_bytes = 4 + slots * (8 + nacre::ManifestSlots::kSlotBytes);
    nacre::pool::ApplyImageUpdate(delta, copy.data(), copy.size()).IgnoreError();
  }
  ImageHeader decoded;
  ImageHeader::Decode(bytes, &decoded).IgnoreError();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  DecodeEdit(bytes);
  DecodeSlots(bytes);
  Apply(bytes);
  const nacre::ManifestRing ring({.database_id = 1, .epoch = 1, .generation = 1});
  for (const uint64_t position : {uint64_t{0}, uint64_t{32}}) {
    const nacre::ManifestRing::Entry entry = ring.Read(bytes, position, size % 3);
    if (entry.found == nacre::ManifestRing::Found::kEntry) DecodeEdit(entry.edit);
  }
  for (const nacre::pool::FeatureSet features :
       {nacre::pool::FeatureSet{0}, nacre::pool::kKnownFeatures}) {
    nacre::ManifestRoot empty;
    empty.features = features;
    std::string root = nacre::EncodeManifestRoot(empty).substr(0, 8) + bytes;
    nacre::PutFixed32(&root, nacre::Crc32c(root.data(), root.size()));
    nacre::ManifestRoot decoded;
    if (nacre::DecodeManifestRoot(root, &decoded).ok() &&
        nacre::EncodeManifestRoot(decoded) != root) {
      abort();
    }
  }
  return 0;
}
