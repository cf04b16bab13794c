#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "table/format/placement.h"

namespace nacre {

/// The most that an owner has in flight, besides one large record: records that no replica has yet.
inline constexpr uint64_t kLogRingBytes = 256 << 10;

/// A part of a database's write-ahead log: an extent on each of several nodes, all with the same
/// bytes (docs/formats.md, "Log"). Recorded in the manifest.
struct LogSegment {
  uint64_t number = 0;             ///< Counted from 1, in the order of the log.
  std::vector<ExtentAddr> copies;  ///< They have equal lengths.
  /// All in it is in tables: it is there only for those that read the log from long ago.
  bool kept = false;

  bool operator==(const LogSegment&) const = default;
};

/// A segment, and how far it has records that were acknowledged.
struct WrittenSegment {
  LogSegment segment;
  uint64_t bytes = 0;  ///< Header and records.
};

/// What the first one has; those after it grow.
inline constexpr uint64_t kFirstSegmentBytes = 64 << 10;
/// Bytes of a segment that the next owner is to read soon.
inline constexpr uint64_t kShortSegmentBytes = 1 << 20;

/// Several in a write buffer, so that space is given back in steps.
inline uint64_t LogSegmentBytes(uint64_t write_buffer_size) {
  constexpr uint64_t kLeast = 256 << 10;
  constexpr uint64_t kMost = 16 << 20;
  return std::clamp(write_buffer_size / 4, kLeast, kMost);
}

/// Whether any replica is on a node for which `is_one` answers true.
inline bool HasCopyOn(const LogSegment& segment, const std::function<bool(NodeId)>& is_one) {
  return std::any_of(segment.copies.begin(), segment.copies.end(),
                     [&](const ExtentAddr& copy) { return is_one(copy.start.node); });
}

}  // namespace nacre
