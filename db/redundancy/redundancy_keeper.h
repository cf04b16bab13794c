#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "db/commit/state_committer.h"
#include "db/context/database_context.h"
#include "db/context/database_state.h"
#include "db/context/node_states.h"
#include "db/redundancy/membership_keeper.h"
#include "db/redundancy/metadata_scrubber.h"
#include "db/redundancy/node_reporter.h"
#include "db/redundancy/scrubber.h"
#include "db/redundancy/table_repairer.h"
#include "db/wal/log_writer.h"
#include "nacre/status.h"
#include "pool/wire/database_report.h"
#include "util/mutex.h"

namespace nacre {

/// Keeps what an open database has on its nodes as redundant as it is to be: it follows the nodes
/// as they come, go and drain, moves manifest and log off those that are lost, has tables repaired,
/// checks all bytes against their checksums, and tells the nodes how far it is.
///
/// Thread safety: all methods may be called from many threads at once, save Start and Stop.
class RedundancyKeeper {
 public:
  /// The parts of the database that this needs; they outlive it.
  struct Database {
    DatabaseContext* context = nullptr;
    DatabaseState* state = nullptr;
    StateCommitter* committer = nullptr;
    LogWriter* log = nullptr;  ///< Null: there is none.
    /// Begins to flush all that takes writes, unless a flush is under way.
    std::function<void()> flush_log;
    /// Has the log take what it failed to take; if it fails again, the next writer is told.
    std::function<void()> settle_writes;
  };

  explicit RedundancyKeeper(Database database);
  RedundancyKeeper(const RedundancyKeeper&) = delete;
  RedundancyKeeper& operator=(const RedundancyKeeper&) = delete;

  void Start();
  /// Waits for what is under way, which ends soon once the database is closing. Idempotent.
  void Stop();

  /// Checks tables, log and manifest now, at full speed. Fails as the scrubbers' VerifyNow do.
  Status VerifyChecksum();
  const TableRepairer& repairer() const { return repairer_; }
  const ScrubCounters& table_scrub() const { return scrubber_.counters(); }
  const MetadataScrubCounters& metadata_scrub() const { return metadata_scrubber_.counters(); }

 private:
  NodeStates LookAtNodes() const;
  void NodesChanged(const NodeStates& before, const NodeStates& now);
  void KeepUpWithNodes();
  /// Tells of nodes whose maintenance has begun or ended.
  void TellOfMaintenance(const NodeStates& before, const NodeStates& now) const;
  /// Tells of nodes that have become slow, or no longer are.
  void LookAtPace();
  /// Whether copies of log and manifest on `node` have to be elsewhere: it is lost, is to be
  /// emptied, or may be away soon and others can take them.
  bool MustLeave(NodeId node) const;
  /// Whether nodes in enough domains are there for all copies, without those that are to be left.
  bool OthersSuffice() const;
  /// Takes down what the database has on nodes in maintenance. `in_log`: copies of its log.
  void NoteLeaving(bool in_log) EXCLUDES(mutex_);
  /// Gives up log segments that have copies on such nodes, and has their records flushed before:
  /// tables are repaired, segments are not, and where nothing is written they would stay as they
  /// are. Segments without records go, too: the next owner cannot tell when all copies are lost.
  void LeaveLogSegments();
  void ReleaseLog();
  pool::DatabaseReport MakeReport() EXCLUDES(mutex_);

  const Database database_;
  DatabaseContext& context_;
  // Only the keeper's thread uses these three.
  Status join_refusal_;  ///< What the LOG has.
  uint64_t pace_changes_ = 0;
  std::vector<bool> slow_;  ///< Nodes that were, at the last look, by number.
  Mutex mutex_;
  std::vector<pool::LeavingNode> leaving_ GUARDED_BY(mutex_);
  Scrubber scrubber_;
  MetadataScrubber metadata_scrubber_;
  NodeReporter reporter_;  ///< Wakes the keeper when its directions have changed.
  MembershipKeeper keeper_;
  TableRepairer repairer_;
};

}  // namespace nacre
