#include "db/manifest/manifest_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "db/manifest/manifest_ring.h"
#include "db/manifest/manifest_slots.h"
#include "pool/read/pool_reader.h"
#include "pool/wire/manifest_image.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

using pool::ImageHeader;
using pool::PoolClient;

constexpr size_t kMaxNotes = 100;

/// One replica of the manifest. What of it is needed is read when it is needed.
struct Copy {
  ExtentAddr extent;
  std::string name;  ///< Address of its node.
  Status status;     ///< If not OK, it cannot be read.
  std::string header_bytes;
  bool has_header = false;
  ImageHeader header;
  std::unique_ptr<char[]> slots;
  size_t slots_bytes = 0;
  std::unique_ptr<char[]> ring;
};

class Recovery {
 public:
  Recovery(PoolClient* client, ManifestRecovered* recovered)
      : client_(client), recovered_(recovered) {}

  Status Run() {
    NACRE_RETURN_IF_ERROR(pool::PoolReader::Open(client_->fabric(), &reader_));
    FindCopies();
    NACRE_RETURN_IF_ERROR(ReadHeaders());
    uint64_t ring_position = 0;
    NACRE_RETURN_IF_ERROR(RestoreImage(&ring_position));
    return Replay(ring_position);
  }

  /// Whether an image update was applied to some replica since Run read its head.
  bool CopiesChanged() const;
  /// Whether some replica's image is later than what was recovered: then edits may have been where
  /// others are now.
  bool WasOvertaken() const;
  size_t CopiesRead() const;

 private:
  /// The replicas on nodes that this client has.
  void FindCopies();
  /// `Unavailable` if no replica can be read.
  Status ReadHeaders();
  Status ReadHeader(Copy* copy);
  /// The newest image that is whole.
  Status RestoreImage(uint64_t* ring_position);
  /// The image of `version`, out of slots of all replicas, those of this version first.
  Status Assemble(uint64_t version, uint64_t* ring_position);
  /// The slot from the first of `copies` where it is whole; null if there is none.
  const char* FindSlot(uint32_t slot, const std::vector<Copy*>& copies);
  Status Replay(uint64_t position);
  /// The edit of `version`. `*found` false: there is none.
  Status ReadEdit(uint64_t version, uint64_t* position, bool* found, ManifestEdit* edit);

  const char* SlotOf(Copy* copy, uint32_t slot, uint32_t slots);
  bool LoadRing(Copy* copy);
  void Unreadable(Copy* copy, Status why);
  void Note(std::string note) {
    if (recovered_->notes.size() < kMaxNotes) recovered_->notes.push_back(std::move(note));
  }

  PoolClient* const client_;
  std::unique_ptr<pool::PoolReader> reader_;  ///< Null if Run has failed at once.
  ManifestRecovered* const recovered_;
  std::vector<Copy> copies_;
};

void Recovery::FindCopies() {
  for (const ManifestRoot::Replica& stored : recovered_->root.replicas) {
    Copy copy;
    copy.extent.start.offset = stored.offset & ((uint64_t{1} << 48) - 1);
    copy.extent.length = stored.length;
    for (int i = 0; i < client_->node_count(); ++i) {
      const auto node = static_cast<NodeId>(i);
      if (client_->instance_id(node) == stored.instance_id && client_->alive(node)) {
        copy.extent.start.node = node;
        copy.name = client_->node_address(node);
      }
    }
    if (!copy.extent.start.valid()) {
      Note(fmt::format("manifest: node with instance {:016x}, which has a copy, is not in the pool",
                       stored.instance_id));
      continue;
    }
    recovered_->copies.push_back(copy.extent);
    copies_.push_back(std::move(copy));
  }
}

void Recovery::Unreadable(Copy* copy, Status why) {
  Note(fmt::format("manifest: the copy of {} cannot be read: {}", copy->name, why.ToString()));
  copy->status = std::move(why);
}

Status Recovery::ReadHeader(Copy* copy) {
  std::string& bytes = copy->header_bytes;
  bytes.resize(ImageHeader::kBytes);
  Status s = reader_->Read(copy->extent, 0, bytes.size(), bytes.data());
  if (!s.ok()) {
    Unreadable(copy, std::move(s));
    return Status::OK();
  }
  s = ImageHeader::Decode(bytes, &copy->header);
  if (s.IsNotSupported()) return s;
  const ManifestRoot& root = recovered_->root;
  if (s.ok() && copy->header.identity != root.identity) s = Status::Corruption("another manifest");
  if (s.ok() && copy->header.applying != 0) s = Status::Corruption("half changed");
  if (s.ok() && (copy->header.image_slots != root.image_slots ||
                 copy->header.slot_bytes != root.slot_bytes)) {
    s = Status::Corruption("another size");
  }
  copy->has_header = s.ok();
  if (!s.ok()) {
    Note(fmt::format("manifest: the head of the copy of {}: {}", copy->name, s.ToString()));
  }
  return Status::OK();
}

bool Recovery::CopiesChanged() const {
  if (reader_ == nullptr) return false;
  char now[ImageHeader::kBytes];
  for (const Copy& copy : copies_) {
    if (copy.status.ok() && reader_->Read(copy.extent, 0, sizeof(now), now).ok() &&
        Slice(now, sizeof(now)) != Slice(copy.header_bytes)) {
      return true;
    }
  }
  return false;
}

bool Recovery::WasOvertaken() const {
  char now[ImageHeader::kBytes];
  return std::any_of(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    ImageHeader header;
    return copy.status.ok() && reader_->Read(copy.extent, 0, sizeof(now), now).ok() &&
           ImageHeader::Decode(Slice(now, sizeof(now)), &header).ok() &&
           header.identity == recovered_->root.identity &&
           header.version > recovered_->state.version;
  });
}

size_t Recovery::CopiesRead() const {
  const auto read = std::count_if(copies_.begin(), copies_.end(),
                                  [](const Copy& copy) { return copy.status.ok(); });
  return static_cast<size_t>(read);
}

Status Recovery::ReadHeaders() {
  bool any = false;
  for (Copy& copy : copies_) {
    NACRE_RETURN_IF_ERROR(ReadHeader(&copy));
    any = any || copy.status.ok();
  }
  if (any) return Status::OK();
  std::string why;
  for (const std::string& note : recovered_->notes) why += (why.empty() ? "" : "; ") + note;
  return Status::Unavailable(why);
}

Status Recovery::RestoreImage(uint64_t* ring_position) {
  std::set<uint64_t, std::greater<>> versions;
  for (const Copy& copy : copies_) {
    if (copy.has_header && copy.status.ok()) versions.insert(copy.header.version);
  }
  Status failure = Status::Corruption("manifest: the heads of all copies are damaged");
  for (const uint64_t version : versions) {
    Status s = Assemble(version, ring_position);
    if (s.ok() || s.IsNotSupported()) return s;
    Note(fmt::format("the image of version {}: {}", version, s.ToString()));
    failure = std::move(s);
  }
  return failure;
}

const char* Recovery::SlotOf(Copy* copy, uint32_t slot, uint32_t slots) {
  if (!copy->status.ok()) return nullptr;
  if (copy->slots == nullptr) {
    // All that any version may use, lest it be read again.
    for (const Copy& other : copies_) {
      if (other.has_header) slots = std::max(slots, other.header.slots_used);
    }
    copy->slots_bytes = slots * ManifestSlots::kSlotBytes;
    copy->slots = std::make_unique_for_overwrite<char[]>(copy->slots_bytes);
    Status s = reader_->Read(copy->extent, recovered_->root.slots_offset(), copy->slots_bytes,
                             copy->slots.get());
    if (!s.ok()) {
      Unreadable(copy, std::move(s));
      return nullptr;
    }
  }
  return copy->slots.get() + slot * ManifestSlots::kSlotBytes;
}

const char* Recovery::FindSlot(uint32_t slot, const std::vector<Copy*>& copies) {
  for (Copy* copy : copies) {
    const char* const bytes = SlotOf(copy, slot, slot + 1);
    if (bytes != nullptr && ManifestSlotReader::IsWhole(bytes)) return bytes;
    if (bytes != nullptr) Note(fmt::format("manifest: slot {} of {} is damaged", slot, copy->name));
  }
  return nullptr;
}

Status Recovery::Assemble(uint64_t version, uint64_t* ring_position) {
  std::vector<Copy*> order;
  uint32_t used = 0;
  for (Copy& copy : copies_) {
    if (!copy.has_header || copy.header.version != version) continue;
    order.push_back(&copy);
    used = copy.header.slots_used;
  }
  for (Copy& copy : copies_) {
    if (!copy.has_header || copy.header.version != version) order.push_back(&copy);
  }
  if (NACRE_PLANTED_BUG("manifest.stale-slots-preferred")) std::reverse(order.begin(), order.end());
  std::vector<const char*> slots(used);
  for (uint32_t slot = 0; slot < used; ++slot) {
    slots[slot] = FindSlot(slot, order);
    if (slots[slot] == nullptr) {
      return Status::Corruption(
          fmt::format("manifest: slot {} (at {} of each copy) is damaged in all copies", slot,
                      recovered_->root.slots_offset() + slot * ManifestSlots::kSlotBytes));
    }
  }
  NACRE_RETURN_IF_ERROR(ManifestSlotReader::Decode(slots, &recovered_->state, ring_position));
  const ManifestState& state = recovered_->state;
  if (state.version != version || state.database_id != recovered_->root.identity.database_id) {
    return Status::Corruption(fmt::format("manifest: image of version {} of database {:x}",
                                          state.version, state.database_id));
  }
  recovered_->image_version = version;
  return Status::OK();
}

// ---- Edits ------------------------------------------------------------------------------------

bool Recovery::LoadRing(Copy* copy) {
  if (!copy->status.ok()) return false;
  if (copy->ring != nullptr) return true;
  const ManifestRoot& root = recovered_->root;
  copy->ring = std::make_unique_for_overwrite<char[]>(root.ring_bytes);
  Status s = reader_->Read(copy->extent, root.ring_offset(), root.ring_bytes, copy->ring.get());
  if (s.ok()) return true;
  Unreadable(copy, std::move(s));
  return false;
}

Status Recovery::ReadEdit(uint64_t version, uint64_t* position, bool* found, ManifestEdit* edit) {
  const ManifestRing ring(recovered_->root.identity);
  *found = false;
  bool absent = false;
  bool wrap = false;
  std::string damaged;
  for (Copy& copy : copies_) {
    if (!LoadRing(&copy)) continue;
    const ManifestRing::Entry entry =
        ring.Read(Slice(copy.ring.get(), recovered_->root.ring_bytes), *position, version);
    switch (entry.found) {
      case ManifestRing::Found::kEntry: {
        edit->version = version;
        NACRE_RETURN_IF_ERROR(DecodeManifestEdit(entry.edit, edit));
        *position = entry.next;
        *found = true;
        break;
      }
      case ManifestRing::Found::kWrap:
        wrap = !NACRE_PLANTED_BUG("manifest.end-of-the-ring-taken-for-the-last-edit");
        absent = !wrap;
        break;
      case ManifestRing::Found::kNothing:
        absent = true;
        break;
      case ManifestRing::Found::kDamage:
        damaged += (damaged.empty() ? "" : ", ") + copy.name;
        break;
    }
    if (*found || wrap) break;
  }
  const std::string where = fmt::format("edit {} (at {} of the ring)", version, *position);
  if (*found || wrap || absent) {
    if (!damaged.empty()) Note(fmt::format("manifest: {} is damaged in {}", where, damaged));
    if (!wrap) return Status::OK();
    if (*position == 0) return Status::Corruption(fmt::format("manifest: {} is nowhere", where));
    *position = 0;
    return ReadEdit(version, position, found, edit);
  }
  if (damaged.empty()) return Status::Unavailable("manifest: no copy's ring can be read");
  return Status::Corruption(
      fmt::format("manifest: {} is damaged in all copies: {}", where, damaged));
}

Status Recovery::Replay(uint64_t position) {
  ManifestState& state = recovered_->state;
  for (;;) {
    ManifestEdit edit;
    bool found = false;
    NACRE_RETURN_IF_ERROR(ReadEdit(state.version + 1, &position, &found, &edit));
    if (!found) {
      recovered_->ring_position = position;
      return Status::OK();
    }
    NACRE_RETURN_IF_ERROR(state.Apply(edit));
    recovered_->edits.push_back(std::move(edit));
  }
}

}  // namespace

Status RecoverManifest(PoolClient* client, const std::string& root_value, uint64_t database_id,
                       ManifestRecovered* recovered) {
  // An owner that is at work updates the images every now and then.
  constexpr int kTries = 10;
  Status status;
  for (int i = 0; i < kTries; ++i) {
    *recovered = ManifestRecovered();
    NACRE_RETURN_IF_ERROR(
        DecodeManifestRoot(root_value, &recovered->root, client->options().protocol.features));
    // The nodes may have been started anew since, and not have heard of them yet.
    client->HearFeatures(recovered->root.features);
    if (recovered->root.identity.database_id != database_id) {
      return Status::Corruption(fmt::format("manifest root: of database {:x}, not {:x}",
                                            recovered->root.identity.database_id, database_id));
    }
    Recovery recovery(client, recovered);
    status = recovery.Run();
    recovered->copies_read = recovery.CopiesRead();
    if (status.ok() && recovery.WasOvertaken()) {
      status = Status::TimedOut("manifest: it changes faster than it can be read");
    } else if (!status.IsCorruption() || !recovery.CopiesChanged()) {
      return status;
    }
  }
  return status;
}

}  // namespace nacre
