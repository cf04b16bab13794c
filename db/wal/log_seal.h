#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "db/wal/log_segments.h"
#include "nacre/status.h"
#include "pool/connect/lane.h"
#include "pool/pool_client.h"
#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre {

/// How long after it began to look at log, manifest and root a follower trusts an open segment:
/// while it sees no mark, it takes what is in it for all that was acknowledged.
inline constexpr std::chrono::milliseconds kMarksHold{250};
/// So an owner that has left a segment which it could not mark in any replica waits longer, once
/// the next one can be found, before it acknowledges anything there. Clocks run alike within a
/// tenth.
inline constexpr std::chrono::milliseconds kUnmarkedPause = kMarksHold + kMarksHold / 10;

/// Marks segments of a log as sealed (table/format/log_format.h), for followers of the database.
///
/// Thread safety: none.
class LogSealer {
 public:
  static Status Create(pool::PoolClient* client, uint64_t database_id,
                       std::unique_ptr<LogSealer>* sealer);

  /// Marks the replicas that are on live nodes but not on one of `lost`. OK if one replica has the
  /// mark, as followers take a segment for open only if none has; otherwise the failure of the last
  /// one, or `Unavailable` if none could be tried. A node that is late is waited for only while no
  /// replica has the mark, at most the time that any operation may take.
  Status Seal(const LogSegment& segment, const std::vector<NodeId>& lost);

  /// What to write at kLogSealAt to seal the segment; there until the next call of any kind.
  rdma::LocalBuffer Mark(const LogSegment& segment);

 private:
  LogSealer(pool::PoolClient* client, uint64_t database_id,
            std::unique_ptr<rdma::MemoryRegion> mark)
      : client_(client), database_id_(database_id), mark_(std::move(mark)) {}

  /// Marks one replica.
  Status Write(const LogSegment& segment, const ExtentAddr& copy, Deadline deadline);
  /// The same; false if it takes long, or fails.
  bool WriteInTime(const LogSegment& segment, const ExtentAddr& copy);

  pool::PoolClient* const client_;
  const uint64_t database_id_;
  const std::unique_ptr<rdma::MemoryRegion> mark_;  ///< Outlives the writes.
  std::unique_ptr<pool::Lane> lane_;
};

}  // namespace nacre
