#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "db/commit/state_committer.h"
#include "db/context/database_context.h"
#include "db/context/database_state.h"
#include "db/context/node_states.h"
#include "db/redundancy/membership_keeper.h"
#include "db/redundancy/node_reporter.h"
#include "db/redundancy/repair_pass.h"
#include "jobs/rebuild_job.h"
#include "nacre/status.h"
#include "pool/wire/database_report.h"
#include "util/mutex.h"
#include "util/threads/periodic_task.h"

namespace nacre {

/// Makes fragments of tables anew whose nodes are lost, drained or have damaged them, as long as
/// the database is open, and moves some onto nodes that have too few. Memory nodes do the work;
/// this says which tables come next, at what pace, and commits the results.
///
/// Thread safety: all methods may be called from many threads at once, save Start and Stop. The
/// mutex of this is taken last, and never held over I/O.
class TableRepairer {
 public:
  /// `look` says how the nodes are. All arguments outlive this.
  TableRepairer(DatabaseContext* context, DatabaseState* state, StateCommitter* committer,
                const MembershipKeeper* keeper, const NodeReporter* reporter,
                std::function<NodeStates()> look)
      : context_(*context),
        state_(state),
        committer_(committer),
        keeper_(keeper),
        reporter_(reporter),
        look_(std::move(look)) {}

  void Start();
  /// Waits for what is under way, which ends soon once the database is closing. Idempotent.
  void Stop() { task_.Stop(); }

  pool::RepairProgress progress() const EXCLUDES(mutex_);
  /// How many tables lack fragments, or may do so. A caller that sees 0 may take further nodes
  /// away.
  uint64_t TablesToRepair() const EXCLUDES(state_->mutex);

 private:
  void Look() EXCLUDES(mutex_, state_->mutex, committer_->mutex);
  RepairPass PlanPass() EXCLUDES(state_->mutex);
  /// Whether there may be more to do at once.
  bool RepairAll() EXCLUDES(mutex_, state_->mutex, committer_->mutex);
  void EndRun();
  void RepairWorker(RepairPass* pass) EXCLUDES(mutex_, state_->mutex, committer_->mutex);
  /// Bytes per second that repair may take; 0: any number.
  uint64_t Limit(const pool::Directions& directions) EXCLUDES(mutex_);
  /// The next tables, once the limit allows them. False: none, or no more for now.
  bool TakeBatch(RepairPass* pass, std::vector<RepairItem>* batch) EXCLUDES(mutex_);
  bool ChooseBatch(RepairPass* pass, uint64_t now_nanos, std::vector<RepairItem>* batch)
      REQUIRES(mutex_);
  /// The node that is to run the job: of those that its tables go to, the one that runs fewest. It
  /// counts there until EndOn.
  NodeId BeginOn(const pool::RebuildJob& job, RepairPass* pass) EXCLUDES(mutex_);
  void EndOn(NodeId node, RepairPass* pass) EXCLUDES(mutex_);
  void RepairBatch(RepairPass* pass, std::vector<RepairItem>* batch)
      EXCLUDES(mutex_, state_->mutex, committer_->mutex);
  /// Puts the repaired tables in the old ones' places, unless these are gone meanwhile.
  void CommitRepaired(RepairPass* pass, const std::vector<RepairedTable>& repaired)
      EXCLUDES(mutex_, state_->mutex, committer_->mutex);
  void NoteFailure(RepairPass* pass, const Status& failure) EXCLUDES(mutex_);
  void NoteRepaired(RepairPass* pass, uint64_t tables, uint64_t bytes) EXCLUDES(mutex_);

  DatabaseContext& context_;
  DatabaseState* const state_;
  StateCommitter* const committer_;
  const MembershipKeeper* const keeper_;
  const NodeReporter* const reporter_;
  const std::function<NodeStates()> look_;

  mutable Mutex mutex_ ACQUIRED_AFTER(state_->mutex);
  pool::RepairProgress progress_ GUARDED_BY(mutex_);
  Status failure_ GUARDED_BY(mutex_);  ///< Why repair waited last.
  /// The thread's own between passes; its workers share it under the mutex.
  RepairRun run_;
  uint64_t node_changes_ = 0;   ///< Only the thread uses this: changes that it has looked at.
  uint64_t look_at_nanos_ = 0;  ///< Likewise: when it looks again without a change.
  PeriodicTask task_;
};

}  // namespace nacre
