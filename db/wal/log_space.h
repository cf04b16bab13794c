#pragma once

#include <cstdint>

#include "db/wal/log_segments.h"
#include "nacre/status.h"

namespace nacre {

/// Where a log's segments come from: implemented by the database.
class LogSpace {
 public:
  virtual ~LogSpace() = default;

  /// Reserves `bytes` or more on each of as many live nodes as there are to be copies, and records
  /// the segment durably before any record goes there. No number comes twice. Called from one
  /// background thread of the log's writer; writers may be waiting for it, so it must wait for none
  /// of them. `NoSpace` and `Unavailable` are tried again when somebody writes; `Fenced` is final.
  virtual Status NewSegment(uint64_t number, uint64_t bytes, LogSegment* segment) = 0;
};

}  // namespace nacre
