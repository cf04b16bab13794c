#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"

// Replicas of a manifest's image, and how they get from one version to the next: the owner sends
// what differs, and the node that holds a replica applies that to it (Aceso, SOSP 2024, section
// 3.2). Neither what is sent nor what is done depends on the size of the rest.

namespace nacre::pool {

/// Which manifest a replica belongs to. Of one database, no two manifests have the same.
struct ManifestIdentity {
  uint64_t database_id = 0;
  uint64_t epoch = 0;       ///< Epoch of the owner that made it.
  uint32_t generation = 0;  ///< Counts the manifests that this owner made.

  bool operator==(const ManifestIdentity&) const = default;
};

/// The head of a replica of a manifest: says what follows, and which version the image has. The
/// owner writes it when it makes the replica, then the node does with each update.
///
/// A replica is this head, then `image_slots` slots of `slot_bytes`, then what the owner writes on
/// its own. Only the first `slots_used` slots mean anything.
struct ImageHeader {
  /// Encoded, the rest zero (docs/formats.md, "Manifest").
  static constexpr size_t kBytes = 256;

  ManifestIdentity identity;
  uint64_t version = 0;  ///< Version of the image.
  /// Version of the image that the node is at, or 0: until it is through, the image is none.
  uint64_t applying = 0;
  uint32_t slot_bytes = 0;
  uint32_t image_slots = 0;
  uint32_t slots_used = 0;

  /// Writes kBytes to `dst`.
  void Encode(char* dst) const;
  /// Decodes at least kBytes. `Corruption` for anything else, `NotSupported` for a newer format.
  /// Safe on any bytes.
  static Status Decode(const Slice& bytes, ImageHeader* header);
};

/// A slot that differs from the image before.
struct SlotChange {
  uint32_t slot = 0;
  std::string before;  ///< Empty: the slot was not used.
  std::string after;
};

/// The difference between two versions of an image, as it travels.
struct ImageDelta {
  ManifestIdentity identity;
  uint64_t base_version = 0;
  uint64_t version = 0;
  uint32_t slots_used = 0;  ///< The number after the change; never fewer than before.
  uint32_t raw_bytes = 0;   ///< Size of `compressed` when it is unpacked.
  uint32_t crc = 0;         ///< CRC32C of `compressed`.
  std::string compressed{};
};

/// Packs `changes`, which are in the order of slots, each once: the XOR of before and after, or
/// what is there after where that has more zeros, compressed with LZ4. Fills in `raw_bytes`, `crc`
/// and `compressed`. `InvalidArgument` if that is more than a delta can hold (1 GiB).
Status PackChanges(const std::vector<SlotChange>& changes, size_t slot_bytes, ImageDelta* delta);

/// Told of all that a replica is going to be changed to, encoded, before the first byte is changed.
/// A failure leaves the replica as it is.
using RecordRedo = std::function<Status(std::string redo)>;

/// Brings the replica in the `length` bytes at `copy` from the delta's base version to its version.
/// OK without a change if it is there already. Else nothing is changed, and `InvalidArgument` is
/// answered for a replica of another manifest or version, `Corruption` if the replica or the delta
/// is damaged: each slot is compared with its checksum before anything is written. `record` may be
/// null, for replicas that end with the process.
Status ApplyImageUpdate(const ImageDelta& delta, char* copy, uint64_t length,
                        const RecordRedo& record = nullptr);
/// Does what a process that was killed in the middle of it had recorded, and perhaps done already.
/// `Corruption`, without a change, if `redo` is none for that replica.
Status RedoImageUpdate(const Slice& redo, char* copy, uint64_t length);

}  // namespace nacre::pool
