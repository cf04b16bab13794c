#pragma once

#include <memory>
#include <vector>

#include "db/log_segments.h"
#include "memnode/lane.h"
#include "memnode/pool_client.h"
#include "nacre/status.h"
#include "rdma/transport.h"

namespace nacre {

/// Marks segments of a log as sealed (db/log_format.h), for those who follow the log from outside.
///
/// Thread safety: none.
class LogSealer {
 public:
  static Status Create(memnode::PoolClient* client, uint64_t database_id,
                       std::unique_ptr<LogSealer>* sealer);

  /// Marks all copies that are on live nodes but not on one of `lost`. OK if one copy has the mark,
  /// or none could be tried; otherwise the failure of the last one. Waits for nodes that do not
  /// answer, at most the time that any operation may take.
  Status Seal(const LogSegment& segment, const std::vector<NodeId>& lost);

  /// What to write at kLogSealAt to seal the segment; there until the next call of any kind.
  rdma::LocalBuffer Mark(const LogSegment& segment);

 private:
  LogSealer(memnode::PoolClient* client, uint64_t database_id,
            std::unique_ptr<rdma::MemoryRegion> mark)
      : client_(client), database_id_(database_id), mark_(std::move(mark)) {}

  /// All of `copies`, or a failure.
  Status Write(const LogSegment& segment, const std::vector<ExtentAddr>& copies);

  memnode::PoolClient* const client_;
  const uint64_t database_id_;
  const std::unique_ptr<rdma::MemoryRegion> mark_;  ///< Outlives the writes.
  std::unique_ptr<memnode::Lane> lane_;
};

}  // namespace nacre
