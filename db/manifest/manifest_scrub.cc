#include "db/manifest/manifest_scrub.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "db/manifest/manifest_ring.h"
#include "db/manifest/manifest_slots.h"
#include "pool/wire/manifest_image.h"
#include "util/clock.h"

namespace nacre {
namespace {

using pool::ImageHeader;

constexpr uint32_t kPieceSlots = 256;
/// How often to read bytes that are being changed. Applying an image update takes a node
/// milliseconds.
constexpr int kLooks = 50;
constexpr auto kPause = std::chrono::milliseconds(10);

/// One replica of a manifest.
class ManifestCopyCheck {
 public:
  ManifestCopyCheck(pool::PoolClient* client, pool::PoolReader* reader,
                    const std::function<ManifestPlace()>& place, const PassBytes& pass,
                    const ExtentAddr& copy)
      : client_(client), reader_(reader), place_(place), pass_(pass), copy_(copy) {}

  /// Finds what is damaged; empty if nothing is, or it cannot be told.
  Status Run(std::string* what) {
    first_ = place_();
    Status status = CheckImage();
    if (status.ok()) status = CheckRing();
    if (status.ok() && !damage_.empty() && IsStillThere()) *what = damage_;
    // A replica that is gone has no damage.
    return status.IsUnavailable() || status.IsTimedOut() ? Status::OK() : status;
  }

 private:
  /// Whether all that was read is still this manifest's memory.
  bool IsStillThere() const { return place_().root.identity == first_.root.identity; }

  Status Read(uint64_t offset, size_t n, char* to) {
    NACRE_RETURN_IF_ERROR(reader_->Read(copy_, offset, n, to));
    return pass_(n);
  }

  /// The head, once no update is being applied; `damage_` says what is wrong if it stays so.
  Status ReadHead(ImageHeader* header, std::string* bytes) {
    std::string before;
    for (int look = 0; look < kLooks; ++look) {
      bytes->resize(ImageHeader::kBytes);
      NACRE_RETURN_IF_ERROR(Read(0, bytes->size(), bytes->data()));
      const Status status = ImageHeader::Decode(*bytes, header);
      damage_.clear();
      if (!status.ok()) {
        damage_ = "head: " + status.ToString();
      } else if (header->identity != first_.root.identity ||
                 header->image_slots != first_.root.image_slots) {
        damage_ = "head of another manifest";
      } else if (header->applying != 0) {
        damage_ = "half changed";
      }
      if (damage_.empty() || !IsStillThere()) return Status::OK();
      if (look > 0 && status.IsCorruption() && *bytes == before) return Status::OK();
      before = *bytes;
      client_->clock()->SleepFor(kPause);
    }
    return Status::OK();
  }

  Status CheckImage() {
    ImageHeader header;
    std::string head;
    NACRE_RETURN_IF_ERROR(ReadHead(&header, &head));
    int looks = 0;
    for (uint32_t first = 0; damage_.empty() && first < header.slots_used;) {
      const uint32_t count = std::min(kPieceSlots, header.slots_used - first);
      uint32_t damaged = 0;
      bool whole = true;
      NACRE_RETURN_IF_ERROR(CheckSlots(first, count, &whole, &damaged));
      if (whole) {
        first += count;
        looks = 0;
        continue;
      }
      // An image update may have changed it at the same time: then the head is another one.
      ImageHeader now;
      std::string head_now;
      NACRE_RETURN_IF_ERROR(ReadHead(&now, &head_now));
      if (!damage_.empty()) break;
      if (head_now == head || ++looks == kLooks) damage_ = fmt::format("slot {}", damaged);
      header = now;
      head = head_now;
    }
    return Status::OK();
  }

  Status CheckSlots(uint32_t first, uint32_t count, bool* whole, uint32_t* damaged) {
    constexpr size_t kSlotBytes = ManifestSlots::kSlotBytes;
    if (slots_ == nullptr) {
      slots_ = std::make_unique_for_overwrite<char[]>(kPieceSlots * kSlotBytes);
    }
    NACRE_RETURN_IF_ERROR(
        Read(first_.root.slots_offset() + first * kSlotBytes, count * kSlotBytes, slots_.get()));
    for (uint32_t i = 0; i < count; ++i) {
      if (ManifestSlotReader::IsWhole(slots_.get() + i * kSlotBytes)) continue;
      *whole = false;
      *damaged = first + i;
      return Status::OK();
    }
    return Status::OK();
  }

  Status CheckRing() {
    const uint64_t bytes = first_.root.ring_bytes;
    const auto ring = std::make_unique_for_overwrite<char[]>(bytes);
    for (int look = 0; damage_.empty() && look < kLooks; ++look) {
      // What counts is what was there before the read began and still counts after it.
      const ManifestPlace before = place_();
      if (before.root.identity != first_.root.identity) return Status::OK();
      NACRE_RETURN_IF_ERROR(Read(first_.root.ring_offset(), bytes, ring.get()));
      uint64_t damaged = 0;
      if (RingIsWhole(before, Slice(ring.get(), bytes), &damaged)) return Status::OK();
      const ManifestPlace after = place_();
      const bool counts = damaged > after.version || damaged >= after.first_edit;
      const bool at_rest = damaged <= before.version || after.version == before.version;
      if (counts && at_rest) damage_ = fmt::format("edit {}", damaged);
    }
    return Status::OK();
  }

  /// Whether the edits that count are there, and nothing behind them passes for one. `*damaged`:
  /// the version of the missing one.
  bool RingIsWhole(const ManifestPlace& place, const Slice& bytes, uint64_t* damaged) const {
    const ManifestRing ring(first_.root.identity);
    uint64_t position = place.ring_position;
    for (uint64_t version = place.first_edit; version <= place.version; ++version) {
      *damaged = version;
      ManifestRing::Entry entry = ring.Read(bytes, position, version);
      if (entry.found == ManifestRing::Found::kWrap && position != 0) {
        entry = ring.Read(bytes, 0, version);
      }
      if (entry.found != ManifestRing::Found::kEntry) return false;
      position = entry.next;
    }
    *damaged = place.version + 1;
    return ring.Read(bytes, position, place.version + 1).found != ManifestRing::Found::kDamage;
  }

  pool::PoolClient* const client_;
  pool::PoolReader* const reader_;
  const std::function<ManifestPlace()>& place_;
  const PassBytes& pass_;
  const ExtentAddr copy_;
  ManifestPlace first_;
  std::string damage_;
  std::unique_ptr<char[]> slots_;
};

}  // namespace

Status CheckManifestCopies(pool::PoolClient* client, pool::PoolReader* reader,
                           const std::function<ManifestPlace()>& place, const PassBytes& pass,
                           ManifestDamage* damage) {
  const ManifestPlace now = place();
  damage->identity = now.root.identity;
  for (const ExtentAddr& copy : now.copies) {
    if (!client->alive(copy.start.node)) continue;
    if (place().root.identity != now.root.identity) break;
    std::string what;
    NACRE_RETURN_IF_ERROR(ManifestCopyCheck(client, reader, place, pass, copy).Run(&what));
    if (what.empty()) continue;
    damage->places.push_back(fmt::format("{}: {}", client->node_address(copy.start.node), what));
  }
  if (place().root.identity != now.root.identity) damage->places.clear();
  return Status::OK();
}

}  // namespace nacre
