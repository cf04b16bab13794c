#pragma once

#include <cstdint>
#include <deque>

#include "nacre/listener.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"

namespace nacre {

/// Why writers do not go ahead at full speed.
enum class Stall : uint8_t { kNone, kDelay, kStop, kClosed };

inline WriteStallCondition ConditionOf(Stall stall) {
  return stall == Stall::kNone    ? WriteStallCondition::kNormal
         : stall == Stall::kDelay ? WriteStallCondition::kDelayed
                                  : WriteStallCondition::kStopped;
}

/// A generation of MemTables on its way to tables.
struct EndedGeneration {
  uint16_t generation;
  SequenceNumber boundary;  ///< All its entries are below.
};

/// How flushes and compactions of a database stand, and what calls have said about them. It is
/// guarded by the database's mutex; a thread that changes it signals those that wait.
struct BackgroundWork {
  std::deque<EndedGeneration> ended_generations;  ///< The oldest generation is the first.
  bool memtable_full = false;                     ///< No room for another generation yet.
  bool flush_running = false;
  int compactions_running = 0;
  int manual_compactions = 0;  ///< Calls that compact what was asked for; one at a time.
  int compactions_held = 0;    ///< Those for whom no automatic compaction is to begin.
  /// Those of them that last for moments and need writes to end, which so must not wait for
  /// compactions.
  int copies = 0;
  uint64_t compactions_ended = 0;  ///< All kinds count; their tables are not marked any more.
  int compactions_stuck = 0;       ///< They run, have failed, and met no room since.
  uint64_t room_made = 0;          ///< How often room was made.
  Status flush_error;              ///< The latest attempt's.
  uint64_t flush_attempts = 0;
  uint64_t flush_failed_attempt = 0;  ///< The latest one that failed.
  int flush_waiters = 0;              ///< Calls of Flush.
  Status compaction_error;
  /// Nothing but deletions is written: there is no room but the headroom, for what MemTables
  /// have, for deletions, and for the compactions that make room with these.
  bool pool_full = false;
  uint32_t last_compacted = 0;  ///< Family of the compaction picked last.

  int pauses = 0;          ///< Calls of PauseBackgroundWork that have no counterpart yet.
  int manual_bans = 0;     ///< Likewise, of DisableManualCompaction.
  int manual_running = 0;  ///< Calls of CompactRange that compact; part of manual_compactions.

  /// Compactions are at work that have not failed: `NoSpace` is not the last word until they end.
  bool RoomMayCome() const {
    return compactions_running > compactions_stuck || manual_compactions > 0;
  }
  bool CompactionFails() const {
    return !compaction_error.ok() && !(compaction_error.IsNoSpace() && RoomMayCome());
  }
  /// `Incomplete`: compactions are not to be asked for.
  Status CheckManual() const {
    return manual_bans == 0 ? Status::OK() : Status::Incomplete("Manual compaction paused");
  }
};

}  // namespace nacre
