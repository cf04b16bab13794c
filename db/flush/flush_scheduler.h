#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "db/commit/state_committer.h"
#include "db/compaction/compaction_runner.h"
#include "db/context/database_context.h"
#include "db/context/database_state.h"
#include "db/family/family_edit.h"
#include "db/flush/memtable_flusher.h"
#include "db/space/headroom.h"
#include "db/write/memtable_generations.h"
#include "db/write/write_controller.h"
#include "db/write/write_path.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "util/threads/executor.h"

namespace nacre {

/// Flushes generations of MemTables, the oldest first and one at a time, by a thread of its own,
/// and gives back the log that has become unneeded. Where there is no room it waits for compactions
/// to make some; once none can, the pool is full, and nothing but deletions is written until there
/// is room again.
///
/// Thread safety: all methods may be called from many threads at once, but for Stop.
class FlushScheduler {
 public:
  struct Owners {
    DatabaseContext* context;
    DatabaseState* state;
    StateCommitter* committer;
    WriteController* controller;
    MemTableGenerations* generations;
    WritePath* writes;
    Headroom* headroom;
    CompactionRunner* compactions;
  };

  /// All owners outlive this.
  explicit FlushScheduler(const Owners& owners)
      : context_(*owners.context),
        state_(owners.state),
        committer_(owners.committer),
        controller_(owners.controller),
        generations_(owners.generations),
        writes_(owners.writes),
        headroom_(owners.headroom),
        compactions_(owners.compactions),
        flusher_(owners.context, owners.state, owners.generations, owners.writes, owners.headroom),
        executor_(owners.context->client->threads()->NewExecutor(1, "nacre-flush")) {}
  FlushScheduler(const FlushScheduler&) = delete;
  FlushScheduler& operator=(const FlushScheduler&) = delete;

  /// Begins to flush if there is anything to flush, or a full pool to be watched. The caller holds
  /// the state's mutex.
  void Schedule();
  /// No flush runs, and none begins any more.
  void Stop() { executor_.reset(); }

  /// Flushes MemTables of `only`, or, if that is null, of all families.
  Status Flush(const FlushOptions& options, const ColumnFamily* only) EXCLUDES(state_->mutex);
  /// Begins to flush all that takes writes, unless a flush is under way.
  void FlushWritten() EXCLUDES(state_->mutex);
  const FlushSites& sites() const { return flusher_.sites(); }

 private:
  Status FlushAndWait(const FlushOptions& options, const ColumnFamily* only)
      REQUIRES(state_->mutex);
  void Loop() EXCLUDES(state_->mutex);
  /// Commits a flush, and ends the generation that it was of.
  Status CommitFlush(const EndedGeneration& flushed, std::vector<FamilyEdit>* edits)
      EXCLUDES(state_->mutex, committer_->mutex);
  /// After a flush found no room: waits for the compactions that may make some, then merges level
  /// 0. Whether there is room that was not there when BackgroundWork::room_made was `room`.
  bool AwaitRoom(uint64_t room) EXCLUDES(state_->mutex);
  /// Has nothing but deletions written from here on. False: it is so already.
  bool EnterFullPool() EXCLUDES(state_->mutex);
  /// In a full pool, while nothing is to be flushed: has all be written again when there is room.
  void WatchFullPool(uint64_t room, int* failures) EXCLUDES(state_->mutex);

  DatabaseContext& context_;
  DatabaseState* const state_;
  StateCommitter* const committer_;
  WriteController* const controller_;
  MemTableGenerations* const generations_;
  WritePath* const writes_;
  Headroom* const headroom_;
  CompactionRunner* const compactions_;
  MemTableFlusher flusher_;
  std::unique_ptr<Executor> executor_;  ///< The last one, as its thread uses all of the above.
};

}  // namespace nacre
