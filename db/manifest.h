#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/table_meta.h"

namespace nacre {

/// The whole state of a cleanly closed database but its tables' bytes: what `Close` leaves on the
/// nodes and `Open` takes up. Byte layout in docs/formats.md.
struct ManifestImage {
  std::string comparator;
  uint64_t manifest_version = 0;
  uint64_t next_table_id = 1;
  SequenceNumber last_sequence = 0;
  uint32_t num_levels = 0;
  uint64_t slab_bytes = 0;
  /// Instances of the nodes that were there, as the tables' placements number them. What lies on
  /// others is lost.
  std::map<NodeId, uint64_t> nodes;
  std::vector<std::pair<uint32_t, TableMeta>> tables;  ///< With their levels.
};

std::string EncodeManifest(const ManifestImage& image);
/// `Corruption` naming what is wrong, `NotSupported` for a newer format. Safe on any bytes.
Status DecodeManifest(const Slice& bytes, ManifestImage* image);

}  // namespace nacre
