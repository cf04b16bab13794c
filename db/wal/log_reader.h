#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "db/wal/log_segments.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "nacre/wal_recovery_mode.h"
#include "pool/pool_client.h"
#include "table/format/internal_key.h"
#include "util/memory/arena.h"

namespace nacre {

/// What a replay has found.
struct LogReadResult {
  uint64_t records = 0;
  uint64_t bytes = 0;  ///< Bytes of these records, as they lie in segments.
  SequenceNumber last_sequence = 0;
  /// The end of the last record, for LogWriterOptions::previous_*; 0: there was none.
  uint64_t end_number = 0;
  uint64_t end_bytes = 0;
  /// The begin of a record such that all that the writer may have had in flight is from here to
  /// `end_bytes`; 0: nothing was.
  uint64_t tail_begin = 0;
  bool healed = false;             ///< Something was damaged in one replica and taken from another.
  std::vector<std::string> notes;  ///< Problems: damage, replicas that cannot be read.
};

/// Called for each record in the order of the log: first sequence, number of updates, and the
/// updates as in a WriteBatch without its header.
using LogVisitor = std::function<Status(SequenceNumber, uint32_t, const Slice&)>;

/// Replays the log that `segments` (in any order) are the rest of, as LogWriter left it. Every
/// record that was acknowledged is visited if one replica of its segment can be read and has it
/// whole. Records that were not acknowledged may be visited too, all of them up to some point of
/// the log, and would be so again while their replicas live; a caller that uses them makes them
/// durable anew, or goes on with a LogWriter that has previous_* set, before the log is read again.
///
/// A record that no replica has whole is dealt with by `mode`; `Corruption` names segment, offset
/// and nodes. At the end of the log, memory that was never written is told from a record that was
/// begun, by stamp or by sequence. `Unavailable` naming the nodes if a segment has no readable
/// replica. A failure of `visit` ends the replay, and is the answer.
Status ReadLog(pool::PoolClient* client, uint64_t database_id,
               const std::vector<LogSegment>& segments, WALRecoveryMode mode,
               const LogVisitor& visit, LogReadResult* result);

/// As LogVisitor, with the number of the part of the log that the record is in.
using LogPartVisitor = std::function<Status(size_t, SequenceNumber, uint32_t, const Slice&)>;

/// The same with `threads` threads, of which the caller is one. The log has at most as many parts
/// as `segments`, numbered in its order; each is visited in order, by one thread, but several parts
/// at once. Only the first `*parts` count: records of later ones may have been visited, though
/// damage or a failure ended the log before them. The updates given to `visit` lie in memory of
/// `kept`, which takes as much as the log is long.
Status ReadLogInParts(pool::PoolClient* client, uint64_t database_id,
                      const std::vector<LogSegment>& segments, WALRecoveryMode mode, size_t threads,
                      ConcurrentArena* kept, const LogPartVisitor& visit, LogReadResult* result,
                      size_t* parts);

}  // namespace nacre
