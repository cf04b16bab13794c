#include "pool/read/slab_map.h"

#include <algorithm>
#include <cstring>

#include "pool/wire/region_layout.h"
#include "util/codes/crc32c.h"

namespace nacre::pool {
namespace {

/// More would be a region beyond what an address can name.
constexpr uint64_t kMaxSlabs = uint64_t{1} << 31;
constexpr uint64_t kEntriesAtOnce = 64 << 10;

Status CheckHeader(RegionHeader header) {
  const uint32_t crc = header.header_crc;
  header.header_crc = 0;
  if (header.magic != kRegionMagic ||
      crc != Crc32c(reinterpret_cast<const char*>(&header), sizeof(header))) {
    return Status::Corruption("the head of the region is damaged");
  }
  if (header.format_version > kRegionFormatVersion) {
    return Status::NotSupported("the region has a newer format than this tool knows");
  }
  if (header.slab_bytes == 0 || header.slab_count > kMaxSlabs) {
    return Status::Corruption("the head of the region makes no sense");
  }
  return Status::OK();
}

}  // namespace

bool SlabMap::Owns(uint64_t database_id, const ExtentAddr& extent) const {
  const uint64_t start = extent.start.offset;
  if (start < slab_area || extent.length == 0) return false;
  const uint64_t first = (start - slab_area) / slab_bytes;
  const uint64_t last = (start - slab_area + extent.length - 1) / slab_bytes;
  for (uint64_t slab = first; slab <= last; ++slab) {
    if (slab >= owners.size() || owners[slab] != database_id) return false;
  }
  return true;
}

Status ReadSlabMap(PoolReader* reader, NodeId node, SlabMap* map) {
  RegionHeader header{};
  NACRE_RETURN_IF_ERROR(reader->Read({.node = node, .offset = 0, .length = sizeof(header)},
                                     reinterpret_cast<char*>(&header)));
  NACRE_RETURN_IF_ERROR(CheckHeader(header));
  *map = {.node = node,
          .instance_id = header.instance_id,
          .slab_bytes = header.slab_bytes,
          .slab_area = header.slab_area,
          .owners = {}};
  std::vector<NodeRange> ranges;
  for (uint64_t done = 0; done < header.slab_count; done += kEntriesAtOnce) {
    const auto count = static_cast<size_t>(std::min(header.slab_count - done, kEntriesAtOnce));
    ranges.push_back({.node = node,
                      .offset = kSlabTableOffset + done * sizeof(SlabEntry),
                      .length = count * sizeof(SlabEntry)});
  }
  Status failure;
  reader->ReadEach(ranges, [&](size_t, const Status& status, const Slice& bytes) {
    if (!status.ok()) failure = status;
    for (size_t at = 0; at < bytes.size(); at += sizeof(SlabEntry)) {
      SlabEntry entry{};
      std::memcpy(&entry, bytes.data() + at, sizeof(entry));
      map->owners.push_back(entry.database_id);
    }
  });
  return failure;
}

}  // namespace nacre::pool
