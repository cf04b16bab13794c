#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/internal_key.h"
#include "util/coding.h"

namespace nacre {

// The bytes of a WriteBatch (see nacre/write_batch.h).

/// Sequence and count.
inline constexpr size_t kWriteBatchHeader = 12;

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

/// Calls `visit(ValueType, key, value)` for each of `updates` (a batch without its header) in
/// order; the value of a deletion is empty. Stops with `Corruption` where the bytes are malformed,
/// and at the end unless there are `expected`. Never reads past the bytes.
template <typename Visit>
Status ForEachEncodedUpdate(const Slice& updates, uint32_t expected, Visit&& visit) {
  uint64_t found = 0;
  Slice input = updates;
  for (; !input.empty(); ++found) {
    const auto type = static_cast<ValueType>(input[0]);
    input.remove_prefix(1);
    Slice key;
    Slice value;
    if (type != ValueType::kValue && type != ValueType::kDeletion) {
      return Status::Corruption("write batch: unknown type of update");
    }
    if (!GetShortPrefixedSlice(&input, &key)) {
      return Status::Corruption("write batch: malformed key");
    }
    if (type == ValueType::kValue && !GetShortPrefixedSlice(&input, &value)) {
      return Status::Corruption("write batch: malformed value");
    }
    visit(type, key, value);
  }
  if (found != expected) return Status::Corruption("write batch: wrong count");
  return Status::OK();
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
  EncodedUpdate(ValueType type, const Slice& key, const Slice& value) {
    before_[0] = static_cast<char>(type);
    char* end = EncodeVarint32(before_ + 1, static_cast<uint32_t>(key.size()));
    parts_[0] = Slice(before_, static_cast<size_t>(end - before_));
    parts_[1] = key;
    if (type == ValueType::kDeletion) return;
    end = EncodeVarint32(between_, static_cast<uint32_t>(value.size()));
    parts_[2] = Slice(between_, static_cast<size_t>(end - between_));
    parts_[3] = value;
  }
  EncodedUpdate(const EncodedUpdate&) = delete;
  EncodedUpdate& operator=(const EncodedUpdate&) = delete;

  /// They view this, the key and the value.
  std::span<const Slice> parts() const { return parts_; }

 private:
  static constexpr size_t kMaxVarint32 = 5;
  char before_[1 + kMaxVarint32];
  char between_[kMaxVarint32];
  std::array<Slice, 4> parts_;
};

}  // namespace nacre
