#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"
#include "util/coding.h"

namespace nacre {

// The bytes of a WriteBatch (see nacre/write_batch.h and docs/formats.md).

/// Sequence and count.
inline constexpr size_t kWriteBatchHeader = 12;
/// Id of the column family that every database has.
inline constexpr uint32_t kDefaultFamily = 0;

/// Type bytes of what has no ValueType of the same number: log data, and updates that are followed
/// by the varint32 id of a column family. RocksDB's.
enum class BatchTag : uint8_t {
  kLogData = 3,
  kFamilyDeletion = 4,
  kFamilyValue = 5,
  kFamilyMerge = 6,
  kFamilySingleDeletion = 8,
  kFamilyRangeDeletion = 14,
};

/// Whether updates of this type have something behind the key. For a range it is the range's end.
inline constexpr bool HasValue(ValueType type) {
  return type != ValueType::kDeletion && type != ValueType::kSingleDeletion;
}

/// An update, or a blob of log data (`value`).
struct BatchItem {
  bool log_data = false;
  ValueType type = ValueType::kDeletion;
  uint32_t family = kDefaultFamily;
  Slice key;
  Slice value;
};

/// As GetLengthPrefixedSlice, faster for lengths of one and two bytes.
inline bool GetShortPrefixedSlice(Slice* input, Slice* result) {
  const auto byte = [input](size_t i) { return static_cast<uint8_t>((*input)[i]); };
  size_t length = 0;
  size_t head = 0;
  if (input->size() >= 2 && byte(0) < 0x80) {
    length = byte(0);
    head = 1;
  } else if (input->size() >= 2 && byte(1) < 0x80) {
    length = (byte(0) & 0x7fu) | uint32_t{byte(1)} << 7;
    head = 2;
  } else {
    return GetLengthPrefixedSlice(input, result);
  }
  if (length > input->size() - head) return false;
  *result = Slice(input->data() + head, length);
  input->remove_prefix(head + length);
  return true;
}

/// What follows a type byte, which was taken from `input`; `item` is as it was made.
Status ParseRestOfBatchItem(uint8_t tag, Slice* input, BatchItem* item);

/// Takes the next one from `input`, which is not empty, and sets `*item`, which views it and is as
/// it was made. `Corruption` if it is malformed. Never reads past the bytes.
inline Status ParseBatchItem(Slice* input, BatchItem* item) {
  const auto tag = static_cast<uint8_t>((*input)[0]);
  input->remove_prefix(1);
  // Most updates are plain values.
  if (tag == static_cast<uint8_t>(ValueType::kValue)) [[likely]] {
    item->type = ValueType::kValue;
    if (GetShortPrefixedSlice(input, &item->key) && GetShortPrefixedSlice(input, &item->value))
        [[likely]] {
      return Status::OK();
    }
    return Status::Corruption("write batch: malformed key or value");
  }
  return ParseRestOfBatchItem(tag, input, item);
}

/// `Corruption` unless they are the same.
Status CheckBatchCount(uint64_t found, uint32_t expected);

/// Calls `visit(ValueType, uint32_t family, key, value)` for each of `updates` (a batch without its
/// header) in order; the value of a deletion is empty, that of a range deletion the end of the
/// range. Log data are passed over. Stops with `Corruption` where the bytes are malformed, and at
/// the end unless there are `expected` updates. Never reads past the bytes.
template <typename Visit>
Status ForEachEncodedUpdate(const Slice& updates, uint32_t expected, Visit&& visit) {
  uint64_t found = 0;
  for (Slice input = updates; !input.empty();) {
    BatchItem item;
    NACRE_RETURN_IF_ERROR(ParseBatchItem(&input, &item));
    if (item.log_data) continue;
    visit(item.type, item.family, item.key, item.value);
    ++found;
  }
  return CheckBatchCount(found, expected);
}

/// The same for a whole batch.
template <typename Visit>
Status ForEachUpdate(const Slice& representation, Visit&& visit) {
  if (representation.size() < kWriteBatchHeader) {
    return Status::Corruption("write batch: shorter than its header");
  }
  Slice updates = representation;
  updates.remove_prefix(kWriteBatchHeader);
  return ForEachEncodedUpdate(updates, DecodeFixed32(representation.data() + 8),
                              std::forward<Visit>(visit));
}

/// One update as a batch has it, in pieces: what is before the key, and between key and value.
class EncodedUpdate {
 public:
  EncodedUpdate(ValueType type, uint32_t family, const Slice& key, const Slice& value) {
    char* end = before_;
    if (family == kDefaultFamily) [[likely]] {
      *end++ = static_cast<char>(type);
    } else {
      *end++ = static_cast<char>(FamilyTag(type));
      end = EncodeVarint32(end, family);
    }
    end = EncodeVarint32(end, static_cast<uint32_t>(key.size()));
    parts_[0] = Slice(before_, static_cast<size_t>(end - before_));
    parts_[1] = key;
    if (!HasValue(type)) return;
    end = EncodeVarint32(between_, static_cast<uint32_t>(value.size()));
    parts_[2] = Slice(between_, static_cast<size_t>(end - between_));
    parts_[3] = value;
  }
  EncodedUpdate(const EncodedUpdate&) = delete;
  EncodedUpdate& operator=(const EncodedUpdate&) = delete;

  /// They view this, the key and the value.
  std::span<const Slice> parts() const { return parts_; }

 private:
  static BatchTag FamilyTag(ValueType type);

  static constexpr size_t kMaxVarint32 = 5;
  char before_[1 + 2 * kMaxVarint32];
  char between_[kMaxVarint32];
  std::array<Slice, 4> parts_;
};

}  // namespace nacre
