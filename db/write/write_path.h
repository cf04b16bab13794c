#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "db/context/database_state.h"
#include "db/wal/log_encryption.h"
#include "db/wal/log_reader.h"
#include "db/wal/log_segments.h"
#include "db/wal/log_space.h"
#include "db/wal/log_writer.h"
#include "db/write/memtable_generations.h"
#include "db/write/started_write.h"
#include "db/write/unsettled_writes.h"
#include "db/write/write_controller.h"
#include "db/write/write_sequencer.h"
#include "nacre/options.h"
#include "nacre/write_batch.h"

namespace nacre {

/// What a write goes through: it is admitted, takes a ticket, goes into the log and the MemTables,
/// awaits the log, and is published in the order of the tickets. Every ticket ends, whatever
/// happens, since later writers wait for it: a write that no node acknowledged stays unsettled
/// until the log takes it, and one that broke off between log and MemTable stops all writes.
///
/// Thread safety: all methods may be called from many threads at once, but for OpenLog and SealLog,
/// which come before any write. A write takes no lock unless it stalls, fails, or fills a MemTable.
class WritePath {
 public:
  WritePath(DatabaseState* state, WriteController* controller, MemTableGenerations* generations)
      : context_(*state->context),
        state_(state),
        controller_(controller),
        generations_(generations),
        sequencer_(generations->sequencer()) {}
  WritePath(const WritePath&) = delete;
  WritePath& operator=(const WritePath&) = delete;

  /// Marks what the last owner left, before this one's log begins.
  Status SealLog(const std::vector<LogSegment>& segments);
  /// `space` outlives the log.
  Status OpenLog(uint64_t next_number, const LogReadResult& replayed, LogSpace* space);
  /// Null: an embedded pool.
  LogWriter* log() const { return log_.get(); }
  bool IsLogged(const WriteOptions& options) const {
    return log_ != nullptr && !options.disable_wal;
  }

  Status WriteOne(const WriteOptions& options, ColumnFamily* family, ValueType type,
                  const Slice& key, const Slice& value);
  Status Write(const WriteOptions& options, WriteBatch* updates);
  /// What Write answers before it looks at anything but the updates and which families there are.
  Status Check(const WriteOptions& options, const WriteBatch& updates) const {
    std::shared_ptr<const ColumnFamilySet> families;
    return CheckBatch(options, &updates, &families);
  }
  /// Write up to Finish, if nothing has to be waited for, save that the log keeps the record for
  /// SendStarted: one write to the log can have the records of many batches. Finish must follow,
  /// soon; it sends what was not.
  bool Start(const WriteOptions& options, WriteBatch* updates, StartedWrite* started);
  /// Sends what the log has of writes that were started, and waits for nothing.
  void SendStarted() { log_->Start(); }
  Status Finish(const WriteOptions& options, const StartedWrite& started);
  /// Finish as far as nothing has to be waited for. False: another try, or Finish, must follow.
  bool TryFinish(const WriteOptions& options, StartedWrite* started, Status* status);

  /// Returns once the log has all that was written before.
  Status SyncLog();
  /// Has the log take once more what it failed to take, and publishes those writes. The log's
  /// failure, if there are still some.
  Status Settle() EXCLUDES(state_->mutex, settling_);
  /// What waits for writers ask now and then: why nothing more will be published for now. A write
  /// broke off, or some wait for a log that has failed. OK: nothing stands against it.
  const WriteSequencer::WhyGiveUp& why_stuck() const { return why_stuck_; }

 private:
  /// Whether a write that is logged is acknowledged only when it is on the nodes.
  bool AwaitsLog(const WriteOptions& options) const {
    return !context_.options.manual_wal_flush || options.sync;
  }
  /// A write's record goes into the log; `*position` is where it ends. A failure has ended the
  /// ticket.
  Status Append(const WriteSequencer::Ticket& ticket, std::span<const Slice> updates,
                uint64_t* position);
  /// Also answers the families that it is for, if there are others than the default one.
  Status CheckBatch(const WriteOptions& options, const WriteBatch* updates,
                    std::shared_ptr<const ColumnFamilySet>* families) const;
  /// `send`: has the record go on its way before the MemTable takes the updates, if it is awaited.
  StartedWrite InsertBatch(const WriteOptions& options, const WriteBatch& updates,
                           const ColumnFamilySet* families, bool send);
  void InsertUpdates(const WriteBatch& updates, const ColumnFamilySet* families, bool logged,
                     StartedWrite* started);
  /// Ends a write that was appended at `position` of the log (0: it was not): awaits it there, and
  /// publishes it. `finished`: the sequencer has it already, and so the log.
  Status End(const WriteOptions& options, const WriteSequencer::Ticket& ticket, uint64_t position,
             bool finished) EXCLUDES(state_->mutex);
  /// A write threw that may be in the log or MemTables in part: it is never published, so that no
  /// write can be taken any more. Answers `why`.
  Status BreakOff(const WriteSequencer::Ticket& ticket, Status why) EXCLUDES(state_->mutex);
  /// Has the ticket, of which nothing is anywhere, published without entries. Answers `why`.
  Status GiveUp(const WriteSequencer::Ticket& ticket, Status why) EXCLUDES(state_->mutex);
  /// Has a header of the log say that writes which it did not take are not to be waited for.
  Status TellFollowers() EXCLUDES(state_->mutex, settling_);
  Status WhyStuck() const;

  DatabaseContext& context_;
  DatabaseState* const state_;
  WriteController* const controller_;
  MemTableGenerations* const generations_;
  WriteSequencer* const sequencer_;
  std::unique_ptr<LogEncryptor> encryptor_;  ///< Null: the database is not encrypted.
  std::unique_ptr<LogWriter> log_;
  const WriteSequencer::WhyGiveUp why_stuck_ = [this] { return WhyStuck(); };
  UnsettledWrites unsettled_;
  Mutex settling_ ACQUIRED_BEFORE(state_->mutex);  ///< One settling at a time.
  /// The last sequence that is in no log since that did not take it, if followers have not been
  /// told; else 0. Release by GiveUp: pairs with End.
  std::atomic<SequenceNumber> untold_{0};
};

}  // namespace nacre
