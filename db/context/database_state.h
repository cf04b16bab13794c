#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "db/context/background_work.h"
#include "db/context/database_context.h"
#include "db/family/column_family.h"
#include "db/family/family_edit.h"
#include "db/manifest/manifest_state.h"
#include "db/manifest/table_lineage.h"
#include "db/version/snapshot_list.h"
#include "db/version/version.h"
#include "table/format/internal_key.h"
#include "util/mutex.h"

namespace nacre {

/// What an open database is at the moment, as all of its parts see and change it: the column
/// families with their MemTables and tables, the snapshots, and how far manifest and flushes have
/// come.
///
/// Thread safety: `mutex` guards what says so; it is never held over I/O. Readers take no lock:
/// they pin the epoch and load a family's view, or the set of families. A part of the database that
/// has to wait for another waits for `changed`, which a part that changes something signals.
struct DatabaseState {
  DatabaseState(DatabaseContext* database, const Options& options, const ManifestState& recovered);

  // ---- Families ----

  std::shared_ptr<const ColumnFamilySet> Families() const;
  /// Makes them the current ones.
  void InstallFamilies(std::shared_ptr<const ColumnFamilySet> made) REQUIRES(mutex);
  /// How many generations of MemTables there may be: as many as the family allows that allows
  /// fewest.
  size_t MemTablesMax() const REQUIRES(mutex);

  enum class Use : uint8_t { kRead, kWrite };  ///< Dropped families are not written.
  /// The family of a handle; null stands for the default one. `InvalidArgument` if the handle is
  /// another database's, or if the family was dropped and is to be written.
  Status FindFamily(ColumnFamilyHandle* handle, ColumnFamily** family, Use use = Use::kRead) const {
    *family = default_family.get();
    if (handle == nullptr) [[likely]]
      return Status::OK();
    return FindOtherFamily(handle, family, use);
  }
  std::unique_ptr<ColumnFamilyHandle> NewHandle(std::shared_ptr<ColumnFamily> family) const {
    return std::make_unique<ColumnFamilyHandleImpl>(std::move(family), this);
  }

  // ---- Views and versions ----

  /// The tables of all families.
  VersionList Versions() const EXCLUDES(mutex);
  VersionList CurrentVersions() const REQUIRES(mutex);
  std::shared_ptr<const ReadView> HoldView(const ColumnFamily& family) const EXCLUDES(mutex);
  /// Makes a new view the current one. The old one waits for RetireUnlinkedViews, because
  /// destroying what it held last is too much work to do under the mutex or on a writer's thread.
  void InstallView(ColumnFamily* family, std::vector<std::shared_ptr<MemTable>> memtables,
                   std::shared_ptr<const Version> version) REQUIRES(mutex);
  /// Makes a new version, which is durable already, current with the MemTables that there are.
  void Install(const FamilyEdit& change) REQUIRES(mutex);
  void RetireUnlinkedViews() EXCLUDES(mutex);

  /// The lineage of a flush or compaction that begins now. The caller adds what only it knows.
  TableLineage BeginLineage(TableLineage::Kind kind) REQUIRES(mutex);

  // ---- Background work ----

  /// Has a flush or a compaction begin, if one is due and none stands against it.
  void MaybeSchedule() REQUIRES(mutex) { schedule(); }
  /// Whether a compaction of some family is due.
  bool CompactionDue() const REQUIRES(mutex);
  /// Why compactions fail, as long as any is to be done; else OK.
  Status CompactionFailure() const REQUIRES(mutex);
  enum class Work : uint8_t { kFlush, kCompaction };
  /// Waits a growing while before background work is tried again. It ends early when the database
  /// closes, when room was made since `work.room_made` was `room`, for a flush when a caller waits
  /// for it or there is more to flush, and for a compaction when none is to begin.
  void BackOff(Work what, int failures, uint64_t room) REQUIRES(mutex);
  /// A compaction has ended, and what it dropped is free.
  void MadeRoom() REQUIRES(mutex);

  /// Returns when no background work runs; none begins until ContinueWork was called as often.
  Status PauseWork() EXCLUDES(mutex);
  Status ContinueWork() EXCLUDES(mutex);

  DatabaseContext* const context;
  const std::shared_ptr<ColumnFamily> default_family;
  /// Changed under the mutex. Set also cancels compactions that run.
  std::atomic<bool> closing{false};
  /// Changed under the mutex, with `closing`. Set also cancels flushes that run, and none begins:
  /// the next owner has from the log what MemTables have.
  std::atomic<bool> handing_over{false};

  mutable Mutex mutex;
  CondVar changed{&mutex};
  std::shared_ptr<const ColumnFamilySet> families GUARDED_BY(mutex);
  uint32_t next_family GUARDED_BY(mutex) = 1;  ///< More than any that there ever was.
  SnapshotList snapshots GUARDED_BY(mutex);
  BackgroundWork work GUARDED_BY(mutex);
  std::function<void()> schedule;  ///< What MaybeSchedule calls; set before there is any work.
  uint64_t manifest_version GUARDED_BY(mutex);
  SequenceNumber flushed GUARDED_BY(mutex);  ///< All up to here is in tables.
  uint64_t last_job GUARDED_BY(mutex) = 0;   ///< The number of the last flush or compaction.

 private:
  Status FindOtherFamily(ColumnFamilyHandle* handle, ColumnFamily** family, Use use) const;

  std::atomic<const ColumnFamilySet*> family_set_{nullptr};  ///< Read under an epoch guard.
  /// Views, and sets of families, that readers may still look at.
  std::vector<std::shared_ptr<const void>> unlinked_views_ GUARDED_BY(mutex);
};

}  // namespace nacre
