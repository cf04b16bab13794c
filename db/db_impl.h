#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "db/database_parts.h"
#include "db/family/family_edit.h"
#include "db/manifest/manifest_edit.h"
#include "db/manifest/manifest_state.h"
#include "db/manifest/table_lineage.h"
#include "db/owner_controls.h"
#include "db/read/key_sequences.h"
#include "db/version/pinned_tables.h"
#include "db/version/version.h"
#include "db/wal/log_reader.h"
#include "db/wal/log_segments.h"
#include "jobs/compaction_job.h"
#include "pool/databases.h"
#include "pool/pool_client.h"
#include "pool/pool_impl.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

class OwnerMetrics;

/// The database. Split by concern into db_*.cc, as the sections below say; db_compact_range.cc has
/// those compactions that are asked for.
///
/// Threads. Readers pin the epoch and load their family's view; they take no lock. Writers take a
/// ticket from `sequencer_`; they take `parts_.state.mutex` only when they stall or when a MemTable
/// is full. `parts_.state.mutex` guards the rest and is never held over I/O;
/// `parts_.committer.mutex` is held while a change is made durable.
class DBImpl final : public OwnerControls {
 public:
  /// The default family's handle is made, too, if `handles` is not null.
  static Status Open(const DBOptions& options, const std::string& name,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db);
  ~DBImpl() override;

  using DB::Get;
  using DB::MultiGet;
  Status Close() override;
  /// To be called before CloseForHandover, while the database still serves: flushes until there is
  /// little for the next owner to replay, as far as flushes are faster than writers. Fails as
  /// Flush.
  Status PrepareHandover() EXCLUDES(parts_.state.mutex);
  /// Close, for the sake of another process that opens the database at once: takes as long as a few
  /// round trips, whatever the database holds and does. Flushes and compactions that run are given
  /// up; nothing is flushed that the log has, from where the next owner replays it. Without a log,
  /// and for writes with WriteOptions::disable_wal that no flush has taken yet, it is as Close.
  ///
  /// There may be iterators, snapshots and handles still; they go before this object. Iterators go
  /// on through what they have at hand, and answer `ShutdownInProgress` when they need more, as all
  /// other reads do.
  Status CloseForHandover();
  using DB::CreateColumnFamilies;
  Status CreateColumnFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                              std::vector<ColumnFamilyHandle*>* handles) override
      EXCLUDES(parts_.state.mutex, parts_.committer.mutex);
  Status DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& families) override
      EXCLUDES(parts_.state.mutex, parts_.committer.mutex);
  Status DestroyColumnFamilyHandle(ColumnFamilyHandle* family) override;
  ColumnFamilyHandle* DefaultColumnFamily() const override { return default_handle_.get(); }
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
             const Slice& value) override;
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key) override;
  Status SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                      const Slice& key) override;
  Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& begin,
                     const Slice& end) override;
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
               const Slice& operand) override;
  Status Write(const WriteOptions& options, WriteBatch* updates) override;
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             PinnableSlice* value) override;
  Status GetMergeOperands(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                          PinnableSlice* merge_operands,
                          GetMergeOperandsOptions* get_merge_operands_options,
                          int* number_of_operands) override;
  void MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                const Slice* keys, PinnableSlice* values, Status* statuses) override;
  bool KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                   std::string* value, bool* value_found) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options,
                                        ColumnFamilyHandle* family) override;
  const Snapshot* GetSnapshot() override;
  void ReleaseSnapshot(const Snapshot* snapshot) override;
  Status NewAsyncDB(AsyncExecutor* executor, std::unique_ptr<AsyncDB>* async) override;
  Status FlushWAL(bool sync) override;
  Status Flush(const FlushOptions& options, ColumnFamilyHandle* family) override
      EXCLUDES(parts_.state.mutex);
  Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family,
                      const Slice* begin, const Slice* end) override;
  Status WaitForCompact() override;
  Status VerifyChecksum() override;
  const std::string& GetName() const override { return parts_.context.name; }
  uint64_t GetLatestSequenceNumber() const override;

  /// What Write answers for updates that it would never take, whatever the state of the database:
  /// bytes that are no batch, keys too long, a merge without an operator, a family that there is
  /// not.
  Status CheckWrite(const WriteOptions& options, const WriteBatch& updates) const;
  /// Whether there is a family of that id, which has not been dropped.
  bool HasFamily(uint32_t id) const;

  // ---- db_tables.cc: for checkpoints and restores ----

  /// Flushes, and pins the tables that there are then. Fails as flushes and reads do.
  Status PinTables(PinnedTables* pinned) EXCLUDES(parts_.state.mutex);
  /// The table where it lies now; null if it is not part of the database any more.
  std::shared_ptr<TableHandle> FindTable(const TableMeta& meta) const EXCLUDES(parts_.state.mutex);
  /// Opens a database that the restore of `checkpoint.restoring` has begun, or makes one that is as
  /// `checkpoint`, without its tables. `Busy` if a process has it open, `InvalidArgument` if it is
  /// none that this restore has begun.
  static Status OpenToRestore(const DBOptions& options, const std::string& name,
                              const std::vector<ColumnFamilyDescriptor>& families,
                              const ManifestState& checkpoint, std::unique_ptr<DBImpl>* db);
  /// Its parts, for a restore.
  DatabaseParts* parts() { return &parts_; }
  KeySequences key_sequences() const { return KeySequences(&parts_.state, &parts_.reads); }
  uint64_t database_id() const { return parts_.context.database_id; }
  uint32_t num_levels() const { return parts_.state.default_family->num_levels(); }
  const DBOptions& options() const { return parts_.context.options; }
  const Comparator* comparator() const { return parts_.state.default_family->user_comparator(); }
  Clock* clock() const { return parts_.context.clock; }

 private:
  DBImpl(const CheckedOptions& checked, const std::string& name,
         std::shared_ptr<pool::PoolImpl> pool, const pool::DatabaseLease& lease,
         const ManifestState& state);

  // ---- db_families.cc ----
  /// Makes the families that the manifest has and `descriptors` name, without tables yet.
  void MakeFamilies(const ManifestState& state,
                    const std::vector<ColumnFamilyDescriptor>& descriptors)
      EXCLUDES(parts_.state.mutex);
  Status MakeMissingFamilies(const std::vector<ColumnFamilyDescriptor>& descriptors)
      EXCLUDES(parts_.state.mutex, parts_.committer.mutex);
  /// With an empty version.
  std::shared_ptr<ColumnFamily> NewFamily(uint32_t id, const std::string& name,
                                          const ColumnFamilyOptions& options, uint32_t num_levels)
      REQUIRES(parts_.state.mutex);
  /// Puts the options of families that are to be made in order, and checks them with the names.
  Status CheckNewFamilies(std::vector<ColumnFamilyDescriptor>* descriptors) const;
  /// `*first` and those after it.
  Status TakeFamilyIds(size_t count, uint32_t* first) EXCLUDES(parts_.state.mutex);
  /// Makes the families of a durable edit current. `descriptors` are in the order of their ids.
  std::vector<std::shared_ptr<ColumnFamily>> InstallNewFamilies(
      const ManifestEdit& edit, const std::vector<ColumnFamilyDescriptor>& descriptors)
      EXCLUDES(parts_.state.mutex);
  /// `InvalidArgument` if one cannot be dropped.
  Status FindFamiliesToDrop(const std::vector<ColumnFamilyHandle*>& handles,
                            std::vector<std::shared_ptr<ColumnFamily>>* families) const;
  /// Takes families out that a durable edit has dropped.
  void UninstallFamilies(const ManifestEdit& edit,
                         const std::vector<std::shared_ptr<ColumnFamily>>& dropped)
      EXCLUDES(parts_.state.mutex);
  /// Handles of `descriptors`, which are all there.
  void MakeHandles(const std::vector<ColumnFamilyDescriptor>& descriptors,
                   std::vector<ColumnFamilyHandle*>* handles);

  // ---- db_open.cc ----
  /// Opens the database, or goes on with its restore, or begins it, from `checkpoint` if that is
  /// not null.
  static Status OpenAs(const DBOptions& options, const std::string& name,
                       const std::vector<ColumnFamilyDescriptor>& families,
                       const ManifestState* checkpoint, std::unique_ptr<DBImpl>* db);
  void StartThreads();
  enum class Ending : uint8_t {
    kClose,     ///< All gets to tables first, and space that is not needed goes back.
    kHandOver,  ///< See CloseForHandover.
  };
  Status CloseAs(Ending ending) EXCLUDES(parts_.state.mutex);
  Status CloseNow(Ending ending) EXCLUDES(parts_.state.mutex);  ///< Once.
  /// Waits for all background work to end. `give_up`: flushes, too, end at once.
  void StopThreads(bool give_up = false) EXCLUDES(parts_.state.mutex);
  /// For a database that failed to open: nothing to flush, nothing to leave behind.
  void Abandon() EXCLUDES(parts_.state.mutex);

  // ---- db_indexes.cc ----
  /// Loads the indexes of the tables that were there when the database was opened, and tries again
  /// what failed as long as it is open. Reads that come before load what they need themselves.
  void LoadIndexes() EXCLUDES(parts_.state.mutex);

  // ---- db_impl.cc ----
  Status WriteOne(const WriteOptions& options, ColumnFamilyHandle* handle, ValueType type,
                  const Slice& key, const Slice& value);

  DatabaseParts parts_;
  const std::unique_ptr<ColumnFamilyHandle> default_handle_;
  bool close_begun_ GUARDED_BY(parts_.state.mutex) = false;  ///< What it answers is being decided.
  bool closed_ GUARDED_BY(parts_.state.mutex) = false;
  Status close_status_ GUARDED_BY(parts_.state.mutex);
  Thread index_thread_;
  std::unique_ptr<OwnerMetrics> metrics_;  ///< Null if none are shown, and once it is closed.
};

}  // namespace nacre
