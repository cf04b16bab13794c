#include "db/manifest/manifest_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include "util/codes/crc32c.h"
#include "util/coding.h"
#include "util/hash.h"
#include "util/planted_bug.h"

namespace nacre {
namespace {

// A slot (little-endian; docs/formats.md, "Manifest"):
//
//     offset size
//          0    4  CRC32C of the rest
//          4    1  kind
//          5    1  zero
//          6    2  bytes of payload in this slot
//          8    8  manifest version of its last change
//         16    8  id of the item: table, segment, node, family; of the header 0
//         24    4  number of the slot in the item's chain
//         28    4  next slot of the chain; 0: none
//         32  224  payload, the rest zero
constexpr size_t kKindAt = 4;
constexpr size_t kPayloadLengthAt = 6;
constexpr size_t kVersionAt = 8;
constexpr size_t kIdAt = 16;
constexpr size_t kPartAt = 24;
constexpr size_t kNextAt = 28;

// The header's payload: the numbers have fixed width, so that it always takes as many slots.
constexpr uint32_t kImageFormatVersion = 1;

uint64_t SlotHash(uint32_t slot, const char* content) {
  return Hash64(Slice(content, ManifestSlots::kSlotBytes)) * (2 * uint64_t{slot} + 1);
}

bool IsFree(const char* slot) {
  static constexpr std::array<char, ManifestSlots::kSlotBytes> kZeros{};
  return std::memcmp(slot, kZeros.data(), kZeros.size()) == 0;
}

Status MalformedImage(std::string_view what) {
  return Status::Corruption(fmt::format("manifest image: {}", what));
}

}  // namespace

ManifestSlots::ManifestSlots(const ManifestState& state, uint64_t ring_position)
    : version_(state.version) {
  Seal(state, ring_position);
  for (const auto& [node, instance] : state.nodes) PutNode(node, instance);
  for (const auto& [id, family] : state.families) PutFamily(id, family);
  // One after the other, before all that are of kinds behind theirs.
  const auto next = items_.lower_bound({Kind::kSegment, 0});
  for (const auto& [id, table] : state.tables) PutTable(table.first, table.second, next);
  for (const auto& [number, segment] : state.segments) PutSegment(segment);
  Seal(state, ring_position);
  changes_.used_before = used();
  tracking_ = true;
}

void ManifestSlots::Apply(const ManifestEdit& edit) {
  version_ = edit.version;
  // Slots that become free are taken again at once.
  for (const uint64_t id : edit.removed) Remove(Kind::kTable, id);
  for (const uint64_t number : edit.segments_removed) Remove(Kind::kSegment, number);
  for (const uint64_t id : edit.families_dropped) {
    if (!NACRE_PLANTED_BUG("family.that-was-dropped-comes-back")) Remove(Kind::kFamily, id);
  }
  for (const auto& [node, instance] : edit.nodes) PutNode(node, instance);
  for (const auto& [id, family] : edit.families_added) PutFamily(id, family);
  for (const auto& [level, meta] : edit.added) PutTable(level, meta, items_.end());
  for (const LogSegment& segment : edit.segments_added) PutSegment(segment);
}

void ManifestSlots::PutTable(uint32_t level, const TableMeta& meta, Items::iterator next) {
  payload_.clear();
  EncodeLevelAndTable(level, meta, &payload_);
  Put(Kind::kTable, meta.id, payload_, next);
}

void ManifestSlots::PutSegment(const LogSegment& segment) {
  std::string payload;
  EncodeLogSegment(segment, &payload);
  Put(Kind::kSegment, segment.number, payload);
}

void ManifestSlots::PutNode(NodeId node, uint64_t instance) {
  std::string payload;
  PutVarint32(&payload, node);
  PutFixed64(&payload, instance);
  Put(Kind::kNode, node, payload);
}

void ManifestSlots::PutFamily(uint32_t id, const FamilyRecord& family) {
  std::string payload;
  PutVarint32(&payload, id);
  EncodeFamilyRecord(family, &payload);
  Put(Kind::kFamily, id, payload);
}

void ManifestSlots::Seal(const ManifestState& state, uint64_t ring_position) {
  version_ = state.version;
  const auto encode = [&] {
    std::string payload;
    PutFixed32(&payload, kImageFormatVersion);
    PutFixed32(&payload, state.num_levels);
    for (const uint64_t number :
         {state.database_id, state.slab_bytes, state.version, state.next_table_id,
          state.last_sequence, state.next_segment, ring_position, uint64_t{used()}, sum_}) {
      PutFixed64(&payload, number);
    }
    PutLengthPrefixedSlice(&payload, state.comparator);
    // Few databases have families. A version that does not know them takes the header for
    // malformed.
    const bool has_families = state.next_family > 1;
    if (state.restoring != 0 || has_families) PutFixed64(&payload, state.restoring);
    if (has_families) PutFixed32(&payload, state.next_family);
    return payload;
  };
  // The first time, and when it grows, its own slots are among those that it counts.
  Put(Kind::kHeader, 0, encode());
  Put(Kind::kHeader, 0, encode());
}

void ManifestSlots::FindChain(uint32_t first, std::vector<uint32_t>* chain) const {
  chain->clear();
  for (uint32_t slot = first;;) {
    chain->push_back(slot);
    slot = DecodeFixed32(image_.slot(slot) + kNextAt);
    if (slot == 0) return;
  }
}

void ManifestSlots::Put(Kind kind, uint64_t id, const Slice& payload, Items::iterator next) {
  const size_t before = items_.size();
  const auto item = items_.try_emplace(next, {kind, id}, 0);
  const bool fresh = items_.size() > before;
  std::vector<uint32_t>& chain = chain_;
  chain.clear();
  if (!fresh) FindChain(item->second, &chain);
  const size_t parts = std::max<size_t>(1, (payload.size() + kPayloadBytes - 1) / kPayloadBytes);
  while (chain.size() > parts) {
    FreeSlot(chain.back());
    chain.pop_back();
  }
  while (chain.size() < parts) chain.push_back(TakeSlot());
  item->second = chain.front();
  for (size_t part = 0; part < parts; ++part) {
    const size_t done = part * kPayloadBytes;
    const size_t n = std::min(kPayloadBytes, payload.size() - done);
    char content[kSlotBytes] = {};
    content[kKindAt] = static_cast<char>(kind);
    EncodeFixed16(content + kPayloadLengthAt, static_cast<uint16_t>(n));
    EncodeFixed64(content + kIdAt, id);
    EncodeFixed32(content + kPartAt, static_cast<uint32_t>(part));
    EncodeFixed32(content + kNextAt, part + 1 < parts ? chain[part + 1] : 0);
    std::memcpy(content + kHeadBytes, payload.data() + done, n);
    // A slot that stays as it is keeps its version.
    const char* const old = image_.slot(chain[part]);
    EncodeFixed64(content + kVersionAt, DecodeFixed64(old + kVersionAt));
    if (std::memcmp(content + kKindAt, old + kKindAt, kSlotBytes - kKindAt) == 0) continue;
    EncodeFixed64(content + kVersionAt, version_);
    EncodeFixed32(content, Crc32c(content + kKindAt, kSlotBytes - kKindAt));
    Write(chain[part], content);
  }
}

void ManifestSlots::Remove(Kind kind, uint64_t id) {
  const auto it = items_.find({kind, id});
  assert(it != items_.end());
  FindChain(it->second, &chain_);
  for (const uint32_t slot : chain_) FreeSlot(slot);
  items_.erase(it);
}

uint32_t ManifestSlots::TakeSlot() {
  if (free_.empty()) return image_.Add();
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void ManifestSlots::FreeSlot(uint32_t slot) {
  const char zeros[kSlotBytes] = {};
  Write(slot, zeros);
  free_.push_back(slot);
}

void ManifestSlots::Write(uint32_t slot, const char* content) {
  const char* const bytes = image_.slot(slot);
  const auto note = [&](Changes* changes) {
    const auto [it, fresh] = changes->before.try_emplace(slot);
    if (fresh && slot < changes->used_before) it->second.assign(bytes, kSlotBytes);
  };
  if (tracking_) note(&changes_);
  if (copy_changes_.has_value()) note(&*copy_changes_);
  const auto counts = [](const char* what) {
    return !IsFree(what) && static_cast<Kind>(what[kKindAt]) != Kind::kHeader;
  };
  if (counts(bytes)) sum_ -= SlotHash(slot, bytes);
  if (counts(content)) sum_ += SlotHash(slot, content);
  std::memcpy(image_.Change(slot), content, kSlotBytes);
}

std::vector<pool::SlotChange> ManifestSlots::Take(Changes* changes) const {
  std::vector<pool::SlotChange> taken;
  for (auto& [slot, before] : changes->before) {
    std::string after(image_.slot(slot), kSlotBytes);
    if (after == before) continue;
    taken.push_back({.slot = slot, .before = std::move(before), .after = std::move(after)});
  }
  changes->before.clear();
  changes->used_before = used();
  return taken;
}

SlotImage ManifestSlots::BeginCopy() {
  copy_changes_ = Changes{.before = {}, .used_before = used()};
  return image_;
}

void ManifestSlots::SwitchToCopy() {
  assert(copy_changes_.has_value());
  changes_ = std::move(*copy_changes_);
  copy_changes_.reset();
}

bool ManifestSlotReader::IsWhole(const char* slot) {
  if (DecodeFixed32(slot) == Crc32c(slot + kKindAt, ManifestSlots::kSlotBytes - kKindAt)) {
    return true;
  }
  return IsFree(slot);
}

Status ManifestSlotReader::Gather(const std::vector<const char*>& slots, size_t first,
                                  std::string* payload, size_t* taken) {
  payload->clear();
  uint32_t part = 0;
  for (size_t slot = first;; ++part) {
    const char* const content = slots[slot];
    const size_t n = DecodeFixed16(content + kPayloadLengthAt);
    if (content[kKindAt] != slots[first][kKindAt] || DecodeFixed32(content + kPartAt) != part ||
        DecodeFixed64(content + kIdAt) != DecodeFixed64(slots[first] + kIdAt) ||
        n > ManifestSlots::kPayloadBytes) {
      return MalformedImage(fmt::format("slot {} is not part of the item in slot {}", slot, first));
    }
    payload->append(content + ManifestSlots::kHeadBytes, n);
    ++*taken;
    const uint32_t next = DecodeFixed32(content + kNextAt);
    if (next == 0) return Status::OK();
    if (next >= slots.size()) return MalformedImage(fmt::format("slot {} has no successor", slot));
    slot = next;
  }
}

Status ManifestSlotReader::Decode(const std::vector<const char*>& slots, ManifestState* state,
                                  uint64_t* ring_position) {
  uint64_t sum = 0;
  size_t in_use = 0;
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    if (IsFree(slots[slot])) continue;
    ++in_use;
    if (static_cast<Kind>(slots[slot][kKindAt]) == Kind::kHeader) continue;
    sum += SlotHash(static_cast<uint32_t>(slot), slots[slot]);
  }
  *state = ManifestState();
  if (slots.empty() || static_cast<Kind>(slots[0][kKindAt]) != Kind::kHeader) {
    return MalformedImage("no header in slot 0");
  }
  std::string payload;
  size_t taken = 0;
  NACRE_RETURN_IF_ERROR(Gather(slots, 0, &payload, &taken));
  NACRE_RETURN_IF_ERROR(DecodeHeader(payload, slots.size(), sum, state, ring_position));
  for (size_t slot = 1; slot < slots.size(); ++slot) {
    const auto kind = static_cast<Kind>(slots[slot][kKindAt]);
    if (kind == Kind::kFree || DecodeFixed32(slots[slot] + kPartAt) != 0) continue;
    NACRE_RETURN_IF_ERROR(Gather(slots, slot, &payload, &taken));
    NACRE_RETURN_IF_ERROR(
        DecodeItem(kind, payload, state).WithContext(fmt::format("slot {}", slot)));
  }
  if (taken != in_use) return MalformedImage("slots that belong to nothing");
  return CheckLevels(*state);
}

Status ManifestSlotReader::CheckLevels(const ManifestState& state) {
  for (const auto& [id, table] : state.tables) {
    if (table.first >= state.LevelsOf(table.second.family)) {
      return MalformedImage(fmt::format("table {} in level {} of column family {}", id, table.first,
                                        table.second.family));
    }
  }
  for (const auto& [id, family] : state.families) {
    if (id >= state.next_family) return MalformedImage(fmt::format("column family {}", id));
  }
  return Status::OK();
}

Status ManifestSlotReader::DecodeHeader(const std::string& payload, uint64_t used, uint64_t sum,
                                        ManifestState* state, uint64_t* ring_position) {
  Slice input = payload;
  uint32_t format = 0;
  if (!GetFixed32(&input, &format)) return MalformedImage("truncated header");
  if (format > kImageFormatVersion) {
    return Status::NotSupported(
        fmt::format("manifest image: format version {} is newer than this program", format));
  }
  uint64_t used_then = 0;
  uint64_t sum_then = 0;
  Slice comparator;
  if (format != kImageFormatVersion || !GetFixed32(&input, &state->num_levels) ||
      !GetFixed64(&input, &state->database_id) || !GetFixed64(&input, &state->slab_bytes) ||
      !GetFixed64(&input, &state->version) || !GetFixed64(&input, &state->next_table_id) ||
      !GetFixed64(&input, &state->last_sequence) || !GetFixed64(&input, &state->next_segment) ||
      !GetFixed64(&input, ring_position) || !GetFixed64(&input, &used_then) ||
      !GetFixed64(&input, &sum_then) || !GetLengthPrefixedSlice(&input, &comparator)) {
    return MalformedImage("malformed header");
  }
  if (!input.empty()) {
    if (!GetFixed64(&input, &state->restoring)) return MalformedImage("malformed header");
    const bool has_families = !input.empty();
    if (has_families && (!GetFixed32(&input, &state->next_family) || state->next_family < 2)) {
      return MalformedImage("malformed header");
    }
    if (!input.empty() || (state->restoring == 0 && !has_families)) {
      return MalformedImage("malformed header");
    }
  }
  state->comparator = comparator.ToString();
  if (used_then != used || sum_then != sum) {
    return MalformedImage(fmt::format("the slots are not those of version {}", state->version));
  }
  return Status::OK();
}

Status ManifestSlotReader::DecodeItem(Kind kind, const std::string& payload, ManifestState* state) {
  Slice input = payload;
  bool fresh = false;
  switch (kind) {
    case Kind::kTable: {
      std::pair<uint32_t, TableMeta> table;
      NACRE_RETURN_IF_ERROR(DecodeLevelAndTable(&input, &table.first, &table.second));
      const uint64_t id = table.second.id;
      // As a manifest is made they are in order.
      const size_t before = state->tables.size();
      state->tables.emplace_hint(state->tables.end(), id, std::move(table));
      fresh = state->tables.size() > before;
      break;
    }
    case Kind::kSegment: {
      LogSegment segment;
      NACRE_RETURN_IF_ERROR(DecodeLogSegment(&input, &segment));
      const uint64_t number = segment.number;
      fresh = state->segments.emplace(number, std::move(segment)).second;
      break;
    }
    case Kind::kNode: {
      uint32_t node = 0;
      uint64_t instance = 0;
      if (!GetVarint32(&input, &node) || node >= kLostNode || !GetFixed64(&input, &instance)) {
        return MalformedImage("node");
      }
      fresh = state->nodes.emplace(static_cast<NodeId>(node), instance).second;
      break;
    }
    case Kind::kFamily: {
      uint32_t id = 0;
      FamilyRecord family;
      if (!GetVarint32(&input, &id) || id == 0) return MalformedImage("column family");
      NACRE_RETURN_IF_ERROR(DecodeFamilyRecord(&input, &family));
      fresh = state->families.emplace(id, std::move(family)).second;
      break;
    }
    default:
      return MalformedImage(fmt::format("item of kind {}", static_cast<int>(kind)));
  }
  return fresh && input.empty() ? Status::OK() : MalformedImage("item");
}

}  // namespace nacre
