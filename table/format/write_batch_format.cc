#include "table/format/write_batch_format.h"

namespace nacre {
namespace {

/// Decodes a type byte: the type of update, and whether the id of a family follows. False if it is
/// neither.
bool TypeOf(uint8_t tag, ValueType* type, bool* has_family) {
  *has_family = true;
  switch (static_cast<BatchTag>(tag)) {
    case BatchTag::kFamilyDeletion:
      *type = ValueType::kDeletion;
      return true;
    case BatchTag::kFamilyValue:
      *type = ValueType::kValue;
      return true;
    case BatchTag::kFamilyMerge:
      *type = ValueType::kMerge;
      return true;
    case BatchTag::kFamilySingleDeletion:
      *type = ValueType::kSingleDeletion;
      return true;
    case BatchTag::kFamilyRangeDeletion:
      *type = ValueType::kRangeDeletion;
      return true;
    case BatchTag::kLogData:
      return false;
  }
  *has_family = false;
  *type = static_cast<ValueType>(tag);
  return IsValueType(tag);
}

}  // namespace

Status ParseRestOfBatchItem(uint8_t tag, Slice* input, BatchItem* item) {
  if (tag == static_cast<uint8_t>(BatchTag::kLogData)) {
    item->log_data = true;
    if (GetShortPrefixedSlice(input, &item->value)) return Status::OK();
    return Status::Corruption("write batch: malformed log data");
  }
  bool has_family = false;
  if (!TypeOf(tag, &item->type, &has_family)) {
    return Status::Corruption("write batch: unknown type of update");
  }
  if (has_family && !GetVarint32(input, &item->family)) {
    return Status::Corruption("write batch: malformed id of a column family");
  }
  if (!GetShortPrefixedSlice(input, &item->key)) {
    return Status::Corruption("write batch: malformed key");
  }
  if (HasValue(item->type) && !GetShortPrefixedSlice(input, &item->value)) {
    return Status::Corruption("write batch: malformed value");
  }
  return Status::OK();
}

Status CheckBatchCount(uint64_t found, uint32_t expected) {
  return found == expected ? Status::OK() : Status::Corruption("write batch: wrong count");
}

BatchTag EncodedUpdate::FamilyTag(ValueType type) {
  switch (type) {
    case ValueType::kDeletion:
      return BatchTag::kFamilyDeletion;
    case ValueType::kValue:
      return BatchTag::kFamilyValue;
    case ValueType::kMerge:
      return BatchTag::kFamilyMerge;
    case ValueType::kSingleDeletion:
      return BatchTag::kFamilySingleDeletion;
    case ValueType::kRangeDeletion:
      break;
  }
  return BatchTag::kFamilyRangeDeletion;
}

}  // namespace nacre
