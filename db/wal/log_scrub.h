#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "db/wal/log_segments.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/read/pool_reader.h"
#include "table/format/placement.h"

namespace nacre {

/// Told of bytes that were read. A failure ends the work, and is the answer.
using PassBytes = std::function<Status(uint64_t bytes)>;

/// The replicas of a log segment, as they compare with their checksums. A replica that is on a lost
/// node, or could not be read, is in neither list.
struct LogSegmentReplicas {
  std::vector<ExtentAddr> whole;
  std::vector<ExtentAddr> damaged;
};

/// Compares the header and the acknowledged records of each replica with their checksums, in one
/// buffer's memory however long they are. If the segment's memory is reused meanwhile, its replicas
/// look damaged: the caller finds out (LogWriter::WithSealed).
///
/// Fails as `pass` does, or with `NoSpace`.
Status CheckLogCopies(pool::PoolClient* client, pool::PoolReader* reader, uint64_t database_id,
                      const WrittenSegment& written, const PassBytes& pass,
                      LogSegmentReplicas* copies);

/// Writes to `damaged` what `whole` has and it has not. Of a sealed segment whose memory stays the
/// log's (LogWriter::WithSealed). A header that is whole stays as it is, with its mark or without.
///
/// `Corruption` if `whole` turns out to be damaged, `Unavailable` or `TimedOut` naming a node that
/// could not be read or written; some bytes may be written then.
Status HealLogCopy(pool::PoolClient* client, pool::PoolReader* reader, uint64_t database_id,
                   const WrittenSegment& written, const ExtentAddr& whole,
                   const ExtentAddr& damaged);

}  // namespace nacre
