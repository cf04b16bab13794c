#pragma once

#include <cstdint>

// The layout of one node's memory (docs/formats.md, "Region of a memory node"). The server writes
// the header and the table; every reader of the region finds the slabs by them.
//
//     0                     RegionHeader
//     kSlabTableOffset      one SlabEntry a slab
//     header.slab_area      the slabs

namespace nacre::pool {

inline constexpr uint64_t kRegionMagic = 0x6e6f69676572434eULL;  // "NCregion"
inline constexpr uint32_t kRegionFormatVersion = 1;
inline constexpr uint64_t kSlabTableOffset = 4096;

/// Little-endian.
struct RegionHeader {
  uint64_t magic;
  uint32_t format_version;
  uint32_t header_crc;  ///< CRC32C of the header with this field 0.
  uint64_t instance_id;
  uint64_t slab_bytes;
  uint64_t slab_count;
  uint64_t slab_area;  ///< Offset of the first slab.
};
static_assert(sizeof(RegionHeader) == 48);

struct SlabEntry {
  uint64_t database_id;  ///< 0: free.
  uint64_t owner_epoch;  ///< Reserved for take-over; 0.
};
static_assert(sizeof(SlabEntry) == 16);

}  // namespace nacre::pool
