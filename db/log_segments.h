#pragma once

#include <cstdint>
#include <vector>

#include "table/placement.h"

namespace nacre {

/// A part of a database's write-ahead log: an extent on each of several nodes, all with the same
/// bytes (docs/formats.md, "Log"). Recorded in the manifest.
struct LogSegment {
  uint64_t number = 0;             ///< From 1 upwards, in the order of the log.
  std::vector<ExtentAddr> copies;  ///< Of equal lengths.

  bool operator==(const LogSegment&) const = default;
};

}  // namespace nacre
