#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "db/context/database_context.h"
#include "db/context/database_state.h"
#include "db/family/family_edit.h"
#include "db/manifest/manifest_edit.h"
#include "db/manifest/manifest_log.h"
#include "db/manifest/manifest_slots.h"
#include "db/manifest/manifest_state.h"
#include "db/wal/kept_log.h"
#include "db/wal/log_segments.h"
#include "db/wal/log_space.h"
#include "db/wal/log_writer.h"
#include "db/write/write_fault.h"
#include "nacre/status.h"
#include "util/mutex.h"

namespace nacre {

/// Makes changes of an open database durable, and then current: it owns the manifest, and what the
/// next edit of it has to say besides the change, such as which segments of the log have become
/// unneeded. It also reserves the space that log and manifest take.
///
/// Thread safety: all methods may be called from many threads at once, but for those before any
/// change, which say so.
class StateCommitter final : public LogSpace, private ManifestSpace {
 public:
  /// `stop_writes` is called with the reason why the database takes no more writes until it is
  /// opened again. All arguments outlive this.
  StateCommitter(DatabaseContext* context, DatabaseState* state,
                 std::function<void(const Status&)> stop_writes)
      : context_(*context), state_(state), stop_writes_(std::move(stop_writes)) {}

  /// Makes the manifest of this owner, which says `initial`; `image` is that of `initial` or null.
  /// Then frees `previous`, the copies of the last owner's manifest. Before any change.
  Status Open(ManifestState initial, std::unique_ptr<ManifestSlots> image,
              const std::vector<ExtentAddr>& previous) EXCLUDES(mutex);
  /// Takes what the last owner left: its state record, and the segments of its log, which have all
  /// up to `last`. They go when that is in tables. Before any change.
  void TakeOver(const std::map<uint64_t, LogSegment>& segments, SequenceNumber last)
      EXCLUDES(mutex);
  /// Null before Open.
  ManifestLog* manifest() const { return manifest_.get(); }

  // ---- Changes ----

  /// Makes the changes durable, all at once; then, under the state's mutex, has `install` make them
  /// current. A change of a family that was dropped meanwhile is emptied.
  Status Commit(std::span<FamilyEdit> changes, ManifestEdit* edit,
                const std::function<void()>& install) EXCLUDES(mutex, state_->mutex);
  /// Makes an edit durable, together with the end of what is unneeded of the log. The caller makes
  /// it current.
  Status CommitEdit(ManifestEdit* edit) REQUIRES(mutex) EXCLUDES(state_->mutex);
  /// Frees what `failure` kept from being committed: at once, or, if the change may be durable
  /// nevertheless, once a later edit shows that it is not.
  void Free(const Status& failure, std::function<void()> free) REQUIRES(mutex);
  /// Frees the tables that changes would have added that failed for the reason `failure`.
  void GiveUp(std::span<const FamilyEdit> changes, const Status& failure)
      EXCLUDES(mutex, state_->mutex);
  /// Writes the state as it is to where a salvage of the manifest finds it: after a change that
  /// left no table to tell of it. A failure goes to the LOG.
  void RecordState() EXCLUDES(mutex, state_->mutex);
  void RecordStateLocked() REQUIRES(mutex) EXCLUDES(state_->mutex);

  // ---- The log and the nodes ----

  Status NewSegment(uint64_t number, uint64_t bytes, LogSegment* segment) override
      EXCLUDES(mutex, state_->mutex);
  /// Gives back those segments of `log` of which all is in tables, with what is left of its
  /// predecessor. Null: there is no log.
  void ReleaseLog(LogWriter* log, SequenceNumber flushed) EXCLUDES(mutex, state_->mutex);
  /// Gives back what was kept of the log for readers that have come further since.
  void ReleaseKeptLog() EXCLUDES(mutex, state_->mutex);
  /// Gives back all that is kept of the log for readers alone: the pool is full. False: there is
  /// nothing.
  bool GiveUpKeptLog() EXCLUDES(mutex, state_->mutex);
  /// Bytes of the log, of one copy, that are kept for readers alone.
  uint64_t kept_log_bytes() EXCLUDES(mutex);
  /// The same at the end of a database, for all segments: everything up to `last` is in tables.
  Status DropLog(SequenceNumber last) EXCLUDES(mutex, state_->mutex);
  /// Moves manifest and state record off the nodes that `leave` names, and has the root name the
  /// nodes that are there.
  void FollowNodes(const std::function<bool(NodeId)>& leave) EXCLUDES(mutex, state_->mutex);

  /// Held from when a change is chosen until it is durable and current: changes are durable in the
  /// order in which they are made current. Other parts take it to choose what no change is about.
  Mutex mutex ACQUIRED_BEFORE(state_->mutex);

 private:
  Status ReserveReplicas(uint64_t bytes, std::vector<ExtentAddr>* copies) override;
  void FreeReplicas(const std::vector<ExtentAddr>& copies) override;
  Status PublishRoot(const std::string& value) override;

  /// Whether the new tables of `change` can still be read: one may have waited for others while
  /// its nodes were lost, one after the other.
  Status CheckReadable(const VersionEdit& change) const;
  KeptLog::Limits KeptLogLimits() const;
  /// Drops these, which are kept no more, and has the manifest say what is.
  void DropKept(std::vector<LogSegment> segments) REQUIRES(mutex) EXCLUDES(state_->mutex);
  Status TryRecordState() REQUIRES(mutex) EXCLUDES(state_->mutex);

  DatabaseContext& context_;
  DatabaseState* const state_;
  const std::function<void(const Status&)> stop_writes_;
  std::unique_ptr<ManifestLog> manifest_;
  /// A change is durable that could not be made current: none may follow it.
  WriteFault install_fault_;
  /// Those nodes that the manifest names.
  std::set<NodeId> recorded_nodes_ GUARDED_BY(mutex);
  std::vector<LogSegment> unneeded_segments_ GUARDED_BY(mutex);  ///< The next edit drops them.
  KeptLog kept_log_ GUARDED_BY(mutex);
  std::vector<LogSegment> replayed_segments_ GUARDED_BY(mutex);  ///< The last owner's.
  SequenceNumber replayed_ GUARDED_BY(mutex) = 0;                ///< The last one in them.
  /// The last state record; without copies, if there is none.
  LogSegment state_record_ GUARDED_BY(mutex);
  /// Frees what edits were to add that may be durable though they failed. The next edit that is
  /// durable, after a renewal of the manifest, shows that they are not.
  std::vector<std::function<void()>> uncertain_ GUARDED_BY(mutex);
  uint64_t membership_published_ GUARDED_BY(mutex) = 0;
};

}  // namespace nacre
