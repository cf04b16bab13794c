#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/manifest/manifest_edit.h"
#include "db/manifest/manifest_state.h"
#include "db/manifest/slot_image.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/wire/manifest_image.h"

namespace nacre {

/// The image of a manifest: its tables, segments, nodes and column families in slots of a fixed
/// size (Aceso, SOSP 2024, section 3.2, where the slots are those of a hash table). Whatever lives
/// keeps its slots, so two images differ only where an edit was, and to know and to send the
/// difference costs as much as these edits did.
///
/// An item that is longer than a slot has a chain of them. Each slot has the manifest version of
/// its last change and a checksum; a free one is all zeros. The header, an item too, whose chain
/// begins in slot 0, has the rest of the state, and a checksum over all other slots.
///
/// Besides the replicas that follow its updates the image can have one more set of replicas
/// that is being made: these begin as the image was at one moment, and get what has changed since.
///
/// Thread safety: none; but what BeginCopy gave may be read by another thread meanwhile.
class ManifestSlots {
 public:
  static constexpr size_t kSlotBytes = SlotImage::kSlotBytes;

  /// The image of `state`, sealed, with nothing changed since.
  ManifestSlots(const ManifestState& state, uint64_t ring_position);

  /// The slots change as the state did by `edit`, which it has taken.
  void Apply(const ManifestEdit& edit);
  /// Most slots that Apply takes for an edit of so many items and encoded bytes.
  static size_t MostSlots(size_t items, size_t encoded_bytes) {
    return items + encoded_bytes / kPayloadBytes;
  }

  /// Makes the header that of `state`; edits later than this one start at `ring_position`.
  void Seal(const ManifestState& state, uint64_t ring_position);
  /// What differs from the time of the last call (at first: of the making), in the order of slots.
  /// The image is sealed.
  std::vector<pool::SlotChange> TakeChanges() { return Take(&changes_); }

  /// What new replicas are to begin with: the image as it is, which is sealed. One set of replicas
  /// is made at a time; a set that was begun before is given up.
  SlotImage BeginCopy();
  /// As TakeChanges, since BeginCopy or the last call of this.
  std::vector<pool::SlotChange> TakeCopyChanges() { return Take(&*copy_changes_); }
  /// Makes TakeChanges answer about the new replicas from here on.
  void SwitchToCopy();
  void AbandonCopy() { copy_changes_.reset(); }

  /// Slots that mean anything: the first so many. Never fewer than before.
  uint32_t used() const { return image_.used(); }
  /// Slots among these that hold nothing.
  size_t free() const { return free_.size(); }
  const SlotImage& image() const { return image_; }

 private:
  friend class ManifestSlotReader;
  enum class Kind : uint8_t {
    kFree = 0,
    kHeader = 1,
    kTable = 2,
    kSegment = 3,
    kNode = 4,
    kFamily = 5
  };
  static constexpr size_t kHeadBytes = 32;
  static constexpr size_t kPayloadBytes = kSlotBytes - kHeadBytes;
  using ItemKey = std::pair<Kind, uint64_t>;
  /// Slots changed since a moment.
  struct Changes {
    std::map<uint32_t, std::string> before;  ///< Their former contents; empty: not in use.
    uint32_t used_before = 0;
  };

  using Items = std::map<ItemKey, uint32_t>;

  void Put(Kind kind, uint64_t id, const Slice& payload) { Put(kind, id, payload, items_.end()); }
  /// `next`: what is likely to be the first item behind this one.
  void Put(Kind kind, uint64_t id, const Slice& payload, Items::iterator next);
  void Remove(Kind kind, uint64_t id);
  void PutTable(uint32_t level, const TableMeta& meta, Items::iterator next);
  void PutSegment(const LogSegment& segment);
  void PutNode(NodeId node, uint64_t instance);
  void PutFamily(uint32_t id, const FamilyRecord& family);
  std::vector<pool::SlotChange> Take(Changes* changes) const;
  /// The slots of the item that begins in `first`.
  void FindChain(uint32_t first, std::vector<uint32_t>* chain) const;
  uint32_t TakeSlot();
  void FreeSlot(uint32_t slot);
  /// Replaces the slot's bytes.
  void Write(uint32_t slot, const char* content);

  uint64_t version_ = 0;  ///< Version of the edit that is being applied.
  SlotImage image_;
  uint64_t sum_ = 0;  ///< Sum of the hashes of all slots but the header's.
  Items items_;       ///< First slot of each.
  std::vector<uint32_t> free_;
  std::vector<uint32_t> chain_;  ///< Slots of the item that is being changed.
  std::string payload_;          ///< Payload of the table that is being changed.
  Changes changes_;              ///< Changes since TakeChanges.
  std::optional<Changes> copy_changes_;
  bool tracking_ = false;  ///< False while the image is made.
};

/// Takes a state out of the slots of an image, wherever each of them is. Safe on any bytes.
class ManifestSlotReader {
 public:
  /// Whether the slot's checksum is right, or the slot is free.
  static bool IsWhole(const char* slot);
  /// `slots`: all of an image's used slots, each of them whole. `Corruption` naming the slot if
  /// they are not an image's of one version, `NotSupported` for a newer format.
  static Status Decode(const std::vector<const char*>& slots, ManifestState* state,
                       uint64_t* ring_position);

 private:
  using Kind = ManifestSlots::Kind;
  static Status DecodeHeader(const std::string& payload, uint64_t used, uint64_t sum,
                             ManifestState* state, uint64_t* ring_position);
  static Status CheckLevels(const ManifestState& state);
  static Status DecodeItem(Kind kind, const std::string& payload, ManifestState* state);
  static Status Gather(const std::vector<const char*>& slots, size_t first, std::string* payload,
                       size_t* taken);
};

}  // namespace nacre
