#include "db/manifest/manifest_edit.h"

#include <utility>

#include "util/coding.h"

namespace nacre {
namespace {

// Layout (docs/formats.md, "Manifest edit"): a varint32 format version, then fields in any number,
// each a byte that says what follows.
constexpr uint32_t kEditFormatVersion = 1;
enum class Field : uint8_t {
  kTable = 1,           // varint32 level, meta
  kTableRemoved = 2,    // varint64 id
  kSegment = 3,         // see EncodeLogSegment
  kSegmentRemoved = 4,  // varint64 number
  kNextTableId = 5,     // varint64
  kLastSequence = 6,    // varint64
  kNode = 7,            // varint32 node, fixed64 instance
  kRestored = 8,        // nothing
  kFamily = 9,          // varint32 id, see EncodeFamilyRecord
  kFamilyDropped = 10,  // varint32 id
};

constexpr uint32_t kOffsetBits = 48;
constexpr uint64_t kMaxOffset = (uint64_t{1} << kOffsetBits) - 1;
/// More than redundancy allows; a longer list is malformed.
constexpr uint32_t kMaxSegmentCopies = 255;
/// With the number of copies: the segment is kept.
constexpr uint32_t kSegmentKept = kMaxSegmentCopies + 1;

void PutField(Field field, std::string* dst) { dst->push_back(static_cast<char>(field)); }

Status MalformedEdit(std::string_view what) {
  return Status::Corruption("manifest edit: malformed " + std::string(what));
}

Status DecodeNode(Slice* input, ManifestEdit* edit) {
  uint32_t node = 0;
  uint64_t instance = 0;
  if (!GetVarint32(input, &node) || node >= kLostNode || !GetFixed64(input, &instance) ||
      !edit->nodes.emplace(static_cast<NodeId>(node), instance).second) {
    return MalformedEdit("node");
  }
  return Status::OK();
}

Status DecodeFamily(Slice* input, ManifestEdit* edit) {
  uint32_t id = 0;
  FamilyRecord family;
  if (!GetVarint32(input, &id) || id == 0 || id == UINT32_MAX) return MalformedEdit("family id");
  NACRE_RETURN_IF_ERROR(DecodeFamilyRecord(input, &family));
  if (!edit->families_added.emplace(id, std::move(family)).second) {
    return MalformedEdit("family id");
  }
  return Status::OK();
}

Status DecodeField(Field field, Slice* input, ManifestEdit* edit) {
  uint64_t number = 0;
  switch (field) {
    case Field::kTable: {
      auto& [level, meta] = edit->added.emplace_back();
      return DecodeLevelAndTable(input, &level, &meta);
    }
    case Field::kTableRemoved:
      if (!GetVarint64(input, &number)) return MalformedEdit("table id");
      edit->removed.push_back(number);
      return Status::OK();
    case Field::kSegment:
      return DecodeLogSegment(input, &edit->segments_added.emplace_back());
    case Field::kSegmentRemoved:
      if (!GetVarint64(input, &number)) return MalformedEdit("segment number");
      edit->segments_removed.push_back(number);
      return Status::OK();
    case Field::kNextTableId:
      if (!GetVarint64(input, &number)) return MalformedEdit("next table id");
      edit->next_table_id = number;
      return Status::OK();
    case Field::kLastSequence:
      if (!GetVarint64(input, &number) || number > kMaxSequenceNumber) {
        return MalformedEdit("sequence number");
      }
      edit->last_sequence = number;
      return Status::OK();
    case Field::kNode:
      return DecodeNode(input, edit);
    case Field::kFamily:
      return DecodeFamily(input, edit);
    case Field::kFamilyDropped:
      if (!GetVarint64(input, &number) || number == 0 || number >= UINT32_MAX) {
        return MalformedEdit("family id");
      }
      edit->families_dropped.push_back(number);
      return Status::OK();
    case Field::kRestored:
      edit->restored = true;
      return Status::OK();
  }
  return MalformedEdit("field " + std::to_string(static_cast<int>(field)));
}

}  // namespace

void EncodeLevelAndTable(uint32_t level, const TableMeta& meta, std::string* dst) {
  PutVarint32(dst, level);
  EncodeTableMeta(meta, dst);
}

Status DecodeLevelAndTable(Slice* input, uint32_t* level, TableMeta* meta) {
  if (!GetVarint32(input, level)) return MalformedEdit("level");
  return DecodeTableMeta(input, meta);
}

void EncodeLogSegment(const LogSegment& segment, std::string* dst) {
  PutVarint64(dst, segment.number);
  const uint32_t kept = segment.kept ? kSegmentKept : 0;
  PutVarint32(dst, kept | static_cast<uint32_t>(segment.copies.size()));
  for (const ExtentAddr& copy : segment.copies) {
    PutFixed64(dst, uint64_t{copy.start.node} << kOffsetBits | copy.start.offset);
    PutVarint64(dst, copy.length);
  }
}

Status DecodeLogSegment(Slice* input, LogSegment* segment) {
  uint32_t copies = 0;
  if (!GetVarint64(input, &segment->number) || !GetVarint32(input, &copies) ||
      copies > (kSegmentKept | kMaxSegmentCopies)) {
    return MalformedEdit("segment");
  }
  segment->kept = (copies & kSegmentKept) != 0;
  copies &= kMaxSegmentCopies;
  segment->copies.resize(copies);
  for (ExtentAddr& copy : segment->copies) {
    uint64_t packed = 0;
    if (!GetFixed64(input, &packed) || !GetVarint64(input, &copy.length)) {
      return MalformedEdit("segment");
    }
    copy.start.node = packed >> kOffsetBits;
    copy.start.offset = packed & kMaxOffset;
  }
  return Status::OK();
}

void EncodeManifestEdit(const ManifestEdit& edit, std::string* dst) {
  PutVarint32(dst, kEditFormatVersion);
  for (const auto& [node, instance] : edit.nodes) {
    PutField(Field::kNode, dst);
    PutVarint32(dst, node);
    PutFixed64(dst, instance);
  }
  for (const auto& [level, meta] : edit.added) {
    PutField(Field::kTable, dst);
    EncodeLevelAndTable(level, meta, dst);
  }
  for (const uint64_t id : edit.removed) {
    PutField(Field::kTableRemoved, dst);
    PutVarint64(dst, id);
  }
  for (const LogSegment& segment : edit.segments_added) {
    PutField(Field::kSegment, dst);
    EncodeLogSegment(segment, dst);
  }
  for (const uint64_t number : edit.segments_removed) {
    PutField(Field::kSegmentRemoved, dst);
    PutVarint64(dst, number);
  }
  if (edit.next_table_id.has_value()) {
    PutField(Field::kNextTableId, dst);
    PutVarint64(dst, *edit.next_table_id);
  }
  if (edit.last_sequence.has_value()) {
    PutField(Field::kLastSequence, dst);
    PutVarint64(dst, *edit.last_sequence);
  }
  for (const auto& [id, family] : edit.families_added) {
    PutField(Field::kFamily, dst);
    PutVarint32(dst, id);
    EncodeFamilyRecord(family, dst);
  }
  for (const uint64_t id : edit.families_dropped) {
    PutField(Field::kFamilyDropped, dst);
    PutVarint64(dst, id);
  }
  if (edit.restored) PutField(Field::kRestored, dst);
}

Status DecodeManifestEdit(const Slice& bytes, ManifestEdit* edit) {
  const uint64_t kept_version = edit->version;
  *edit = ManifestEdit();
  edit->version = kept_version;
  Slice input = bytes;
  uint32_t version = 0;
  if (!GetVarint32(&input, &version)) return MalformedEdit("format version");
  if (version > kEditFormatVersion) {
    return Status::NotSupported("manifest edit: format version " + std::to_string(version) +
                                " is newer than this program");
  }
  if (version != kEditFormatVersion) return MalformedEdit("format version");
  while (!input.empty()) {
    const auto field = static_cast<Field>(input[0]);
    input.remove_prefix(1);
    NACRE_RETURN_IF_ERROR(DecodeField(field, &input, edit));
  }
  return Status::OK();
}

}  // namespace nacre
