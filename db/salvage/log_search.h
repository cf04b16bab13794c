#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/salvage/memory_scan.h"
#include "db/wal/log_segments.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "table/format/internal_key.h"

namespace nacre {

/// The rest of a log, found by the headers of its segments.
struct FoundLog {
  /// Those that have records beyond what is in tables, and all after them; in their order.
  std::vector<LogSegment> segments;
  uint64_t last_number = 0;  ///< The greatest number of all segments that were found.
  uint64_t records = 0;      ///< Records of `segments`, beyond what is in tables.
  uint64_t bytes = 0;        ///< Bytes of these records.
  SequenceNumber last_sequence = 0;
  std::vector<std::string> notes{};
};

/// Follows the log from its latest segment back, as long as the one before is there: one that is
/// not there was given back, with all before it. What has no sequence above `flushed` is in tables.
/// A header tells no length, so a segment reaches as far as its records, at most to the next of
/// `occupied` (by node, start to end) or the end of the memory (`rooms`, by node, likewise).
Status FindLog(pool::PoolClient* client, uint64_t database_id,
               const std::vector<FoundLogHead>& heads, SequenceNumber flushed,
               const std::map<NodeId, Stretches>& rooms,
               const std::map<NodeId, Stretches>& occupied, FoundLog* log);

}  // namespace nacre
