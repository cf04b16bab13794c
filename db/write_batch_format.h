#pragma once

#include <cstdint>
#include <utility>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/internal_key.h"
#include "util/coding.h"

namespace nacre {

// The bytes of a WriteBatch (see nacre/write_batch.h).

/// Sequence and count.
inline constexpr size_t kWriteBatchHeader = 12;

/// Calls `visit(ValueType, key, value)` for each update in order; the value of a deletion is empty.
/// Stops with `Corruption` where the bytes are malformed, and at the end if the count is another
/// one. Never reads past the bytes.
template <typename Visit>
Status ForEachUpdate(const Slice& representation, Visit&& visit) {
  if (representation.size() < kWriteBatchHeader) {
    return Status::Corruption("write batch: shorter than its header");
  }
  const uint32_t expected = DecodeFixed32(representation.data() + 8);
  uint64_t found = 0;
  Slice input = representation;
  input.remove_prefix(kWriteBatchHeader);
  for (; !input.empty(); ++found) {
    const auto type = static_cast<ValueType>(input[0]);
    input.remove_prefix(1);
    Slice key;
    Slice value;
    if (type != ValueType::kValue && type != ValueType::kDeletion) {
      return Status::Corruption("write batch: unknown type of update");
    }
    if (!GetLengthPrefixedSlice(&input, &key)) {
      return Status::Corruption("write batch: malformed key");
    }
    if (type == ValueType::kValue && !GetLengthPrefixedSlice(&input, &value)) {
      return Status::Corruption("write batch: malformed value");
    }
    visit(type, key, value);
  }
  if (found != expected) return Status::Corruption("write batch: wrong count");
  return Status::OK();
}

}  // namespace nacre
