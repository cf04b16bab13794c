#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "db/wal/log_replicas.h"
#include "db/wal/log_segments.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/wal_recovery_mode.h"
#include "pool/pool_client.h"
#include "pool/read/pool_reader.h"
#include "table/format/internal_key.h"
#include "table/format/log_format.h"
#include "util/memory/arena.h"

namespace nacre {

struct LogReadResult;

/// A segment that belongs to a log.
struct LogLink {
  const LogSegment* segment = nullptr;
  LogSegmentHead head;
  uint64_t end = 0;           ///< End of its records, as its successor says; 0: unknown.
  std::string damage_before;  ///< Why it may be that something is missing before its records.
};

/// Scans one segment of a log. `Run` finds its records, whatever the segments before it hold, so
/// that several segments can be scanned at once; `Conclude` decides which of them count.
///
/// Thread safety: none.
class LogScan {
 public:
  using Visitor = std::function<Status(SequenceNumber, uint32_t, const Slice&)>;

  /// `link` outlives this. `kept`: see ReadLog.
  LogScan(pool::PoolClient* client, uint64_t database_id, WALRecoveryMode mode, const LogLink* link,
          ConcurrentArena* kept);

  /// Visits the records up to a damage behind which none counts in this mode, or a failure.
  /// `reader` outlives this, and serves no other thread until Conclude has returned.
  void Run(pool::PoolReader* reader, const Visitor& visit);
  /// Must follow Run, in the order of the log. Adds what was found to `*result`, and answers what
  /// the mode makes of damage; `*stop`: no segment behind this one counts.
  Status Conclude(LogReadResult* result, bool* stop);

 private:
  /// Records one after the other, and what is behind them.
  struct Span {
    uint64_t records = 0;
    uint64_t bytes = 0;
    SequenceNumber last_sequence = 0;
    uint64_t end = 0;      ///< End of the last record.
    uint64_t tail = 0;     ///< Begin of the first record that may have been in flight.
    bool healed = false;   ///< A replica lacked something that another one had.
    bool damaged = false;  ///< No replica has a record at `at`,
    uint64_t at = 0;
    uint64_t next = 0;  ///< but one has here, or none up to here, the end.
  };

  Status Scan(const Visitor& visit);
  bool FindRecord(LogRecord* record, bool* lacking);
  /// The record at `offset` of one replica.
  bool RecordAt(size_t replica, uint64_t offset, LogRecord* record);
  uint64_t FindNext();
  bool AnyResembles(uint64_t offset, SequenceNumber last);
  Status Damaged(const std::string& what, bool at_tail, LogReadResult* result) const;

  pool::PoolClient* const client_;
  const WALRecoveryMode mode_;
  const LogLink* const link_;
  const uint32_t stamp_;
  const uint64_t end_;
  const bool open_ended_;
  LogReplicas replicas_;
  uint64_t offset_ = kLogHeaderBytes;
  std::vector<Span> spans_;
  bool healed_at_end_ = false;
  Status failure_;  ///< Behind the last span.
};

}  // namespace nacre
