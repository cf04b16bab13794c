#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "db/commit/state_committer.h"
#include "db/compaction/range_compactor.h"
#include "db/context/database_context.h"
#include "db/context/database_state.h"
#include "db/version/compaction_picker.h"
#include "db/write/write_controller.h"
#include "nacre/status.h"
#include "util/threads/executor.h"

namespace nacre {

/// Runs the compactions of a database: those that are due, by threads of its own, and those that
/// are asked for (ManualCompaction), by the caller's. At most one compaction has a table as
/// input at a time, which the pickers see to.
///
/// Thread safety: all methods may be called from many threads at once, but for Stop.
class CompactionRunner {
 public:
  /// All arguments outlive this.
  CompactionRunner(DatabaseContext* context, DatabaseState* state, StateCommitter* committer,
                   WriteController* controller);
  CompactionRunner(const CompactionRunner&) = delete;
  CompactionRunner& operator=(const CompactionRunner&) = delete;

  /// Begins a compaction if one is due and there may be one more. The caller holds the state's
  /// mutex.
  void Schedule();
  /// There may be more at a time from now on.
  void Grow(int compactions) { executor_->Grow(compactions); }
  /// None runs, and none begins any more.
  void Stop() { executor_.reset(); }

  /// Runs a compaction that was picked, makes it durable and current, and releases its tables.
  Status RunAndCommit(Compaction* compaction) EXCLUDES(state_->mutex);
  /// Merges level 0 early, and takes tombstones down, for the space of what they hide.
  void MakeRoom() EXCLUDES(state_->mutex);

  // ---- For compactions that are asked for ----

  DatabaseContext* context() const { return &context_; }
  DatabaseState* state() const { return state_; }
  StateCommitter* committer() const { return committer_; }
  WriteController* controller() const { return controller_; }

 private:
  /// One thread's work: compactions, as long as any is due.
  void Loop() EXCLUDES(state_->mutex);
  /// The families take turns; null if none has a compaction due.
  std::unique_ptr<Compaction> Pick() REQUIRES(committer_->mutex, state_->mutex);
  Status TryCompaction(Compaction* compaction, bool* released) EXCLUDES(state_->mutex);
  /// What the outputs' lineages have in common.
  TableLineage LineageOf(const Compaction& compaction, size_t ranges) EXCLUDES(state_->mutex);

  DatabaseContext& context_;
  DatabaseState* const state_;
  StateCommitter* const committer_;
  WriteController* const controller_;
  RangeCompactor ranges_;
  std::vector<SequenceNumber> snapshots_at_last_rewrite_ GUARDED_BY(state_->mutex);
  std::unique_ptr<Executor> executor_;  ///< The last one, as its threads use all of the above.
};

}  // namespace nacre
