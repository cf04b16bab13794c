#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/wire/manifest_image.h"
#include "pool/wire/versions.h"

namespace nacre {

/// Where the replicas of a database's manifest lie: the value of its root register. Nodes are named
/// by instance, since their numbers differ from one opening to the next.
///
/// A replica is a pool::ImageHeader, `image_slots` slots, and the ring of edits, without gaps.
struct ManifestRoot {
  struct Replica {
    uint64_t instance_id = 0;
    uint64_t offset = 0;  ///< Offset in the node's region.
    uint64_t length = 0;

    bool operator==(const Replica&) const = default;
  };

  pool::ManifestIdentity identity;
  uint32_t slot_bytes = 0;
  uint32_t image_slots = 0;
  uint64_t ring_bytes = 0;
  /// What the database may use: features that were on in the pool when the manifest was made.
  pool::FeatureSet features = 0;
  std::vector<Replica> replicas;

  uint64_t slots_offset() const { return pool::ImageHeader::kBytes; }
  uint64_t ring_offset() const { return slots_offset() + uint64_t{image_slots} * slot_bytes; }
  /// Size of a replica.
  uint64_t bytes() const { return ring_offset() + ring_bytes; }

  bool operator==(const ManifestRoot&) const = default;
};

std::string EncodeManifestRoot(const ManifestRoot& root);
/// `Corruption` saying what is wrong, `NotSupported` for a newer format, or one that names features
/// beyond `known`. Safe on any bytes.
Status DecodeManifestRoot(const Slice& bytes, ManifestRoot* root,
                          pool::FeatureSet known = pool::kKnownFeatures);

}  // namespace nacre
