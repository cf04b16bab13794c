#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

// What a record may hold. A table repeats keys in its range index and its footer, and records have
// 32-bit lengths, so an update beyond these could be taken into a MemTable but never flushed.
inline constexpr uint64_t kMaxUserKeyBytes = 1 << 20;
inline constexpr uint64_t kMaxValueBytes = uint64_t{1} << 31;
/// The most bytes of such an update, with its lengths, tag and checksum.
inline constexpr uint64_t kMaxRecordBytes = kMaxUserKeyBytes + kMaxValueBytes + 64;

/// `InvalidArgument` naming what is too long.
inline Status CheckUpdate(const Slice& key, const Slice& value) {
  if (key.size() <= kMaxUserKeyBytes && value.size() <= kMaxValueBytes) [[likely]]
    return Status::OK();
  const bool is_key = key.size() > kMaxUserKeyBytes;
  return Status::InvalidArgument(
      (is_key ? "key of " : "value of ") + std::to_string(is_key ? key.size() : value.size()) +
      " bytes, at most " + std::to_string(is_key ? kMaxUserKeyBytes : kMaxValueBytes) +
      " are allowed");
}

}  // namespace nacre
