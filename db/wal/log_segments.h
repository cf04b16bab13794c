#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "table/format/placement.h"

namespace nacre {

/// Of records that no copy has yet: so much, or one large record, an owner has under way at most.
inline constexpr uint64_t kLogRingBytes = 256 << 10;

/// A part of a database's write-ahead log: an extent on each of several nodes, all with the same
/// bytes (docs/formats.md, "Log"). Recorded in the manifest.
struct LogSegment {
  uint64_t number = 0;             ///< From 1 upwards, in the order of the log.
  std::vector<ExtentAddr> copies;  ///< Of equal lengths.

  bool operator==(const LogSegment&) const = default;
};

/// A segment, and how far it has records that were acknowledged.
struct WrittenSegment {
  LogSegment segment;
  uint64_t bytes = 0;  ///< Header and records.
};

/// Several in a write buffer, so that space is given back in steps.
inline uint64_t LogSegmentBytes(uint64_t write_buffer_size) {
  constexpr uint64_t kLeast = 256 << 10;
  constexpr uint64_t kMost = 16 << 20;
  return std::clamp(write_buffer_size / 4, kLeast, kMost);
}

/// Whether any copy is on a node for which `is_one` answers true.
inline bool HasCopyOn(const LogSegment& segment, const std::function<bool(NodeId)>& is_one) {
  return std::any_of(segment.copies.begin(), segment.copies.end(),
                     [&](const ExtentAddr& copy) { return is_one(copy.start.node); });
}

}  // namespace nacre
