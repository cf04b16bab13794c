#pragma once

#include <cstdint>

#include "db/wal/log_segments.h"
#include "nacre/status.h"

namespace nacre {

/// The source of a log's segments; implemented by the database.
class LogSpace {
 public:
  virtual ~LogSpace() = default;

  /// Reserves `bytes` or more on each of as many live nodes as there are to be replicas, and
  /// records the segment durably before any record goes there. No number comes twice. It is called
  /// from one background thread of the log's writer; writers may be waiting for it, so it must wait
  /// for none of them. `NoSpace` and `Unavailable` are tried again with the next write; `Fenced` is
  /// final.
  virtual Status NewSegment(uint64_t number, uint64_t bytes, LogSegment* segment) = 0;
};

}  // namespace nacre
