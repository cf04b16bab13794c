#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "db/follower/follower_state.h"
#include "db/follower/follower_view.h"
#include "db/metrics/follower_metrics.h"
#include "db/read/lookup_batch.h"
#include "nacre/db.h"
#include "pool/pool_client.h"
#include "pool/pool_impl.h"
#include "pool/store/table_store.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/epoch.h"
#include "util/threads/thread.h"

namespace nacre {

/// A database that another process owns, opened by DB::OpenForReadOnly or DB::OpenAsSecondary.
/// follower_db.cc has opening, catching up and the rest, follower_read.cc the reads.
///
/// Reads. The tables' memory is reused without notice once the owner has compacted them away. Each
/// record, and each section that is loaded, has a checksum that covers the table's id, which is
/// never used twice, so bytes that are not this table's do not match, also where they have the same
/// keys. A bucket of a remote point index has none, but what it finds is a record, and where it
/// finds nothing the interval of records is read where the key would be; so checksums are always
/// verified here. Decoding for lost or damaged fragments uses chunks that were compared with their
/// fragments' tails (pool/store/chunk_sums.h). A read that meets such bytes asks the manifest. If
/// that has gone on, the read is made again in the latest view; if not, the bytes are damaged; and
/// if it cannot be asked, that is unknown, and the read answers why.
///
/// Threads. Readers pin the epoch and load `view_`; they take no lock. One thread at a time catches
/// up; threads that wait for what was acknowledged before share the next catching up that begins.
class FollowerDB final : public DB {
 public:
  enum class Mode : uint8_t { kFixed, kFollowing };

  /// `handles` may be null.
  static Status Open(const DBOptions& options, const std::string& name,
                     const std::vector<ColumnFamilyDescriptor>& families, Mode mode,
                     bool error_if_wal_file_exists, std::vector<ColumnFamilyHandle*>* handles,
                     std::unique_ptr<DB>* db);
  ~FollowerDB() override;

  using DB::Get;
  using DB::MultiGet;
  Status Close() override EXCLUDES(mutex_);
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
  std::vector<Status> MultiGet(const ReadOptions& options,
                               const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options,
                                        ColumnFamilyHandle* family) override;
  Status NewIterators(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                      std::vector<std::unique_ptr<Iterator>>* iterators) override;
  const Snapshot* GetSnapshot() override;
  void ReleaseSnapshot(const Snapshot* snapshot) override;
  Status FlushWAL(bool sync) override;
  Status Flush(const FlushOptions& options, ColumnFamilyHandle* family) override;
  Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family,
                      const Slice* begin, const Slice* end) override;
  Status WaitForCompact() override;
  Status VerifyChecksum() override;
  Status TryCatchUpWithPrimary() override EXCLUDES(mutex_);
  Status GetUpdatesSince(uint64_t sequence,
                         std::unique_ptr<TransactionLogIterator>* updates) override;
  bool GetProperty(ColumnFamilyHandle* family, const Slice& property, std::string* value) override;
  bool GetIntProperty(ColumnFamilyHandle* family, const Slice& property, uint64_t* value) override
      EXCLUDES(mutex_);
  Status GetApproximateSizes(ColumnFamilyHandle* family, const Range* ranges, int n,
                             uint64_t* sizes) override;
  void GetLiveTablesMetaData(std::vector<LiveTableMetaData>* tables) override;
  void GetColumnFamilyMetaData(ColumnFamilyHandle* family, ColumnFamilyMetaData* metadata) override;
  int NumberLevels(ColumnFamilyHandle* family) override;
  Options GetOptions(ColumnFamilyHandle* family) const override;
  DBOptions GetDBOptions() const override { return options_; }
  const std::string& GetName() const override { return name_; }
  uint64_t GetLatestSequenceNumber() const override;

  const DBOptions& options() const { return options_; }
  Clock* clock() const { return client_->clock(); }
  uint64_t database_id() const { return state_.database_id(); }
  const Comparator* comparator() const;
  /// All tables that the database has now, and what it is with just these. The owner knows nothing
  /// of it: their memory may be reused at any time, as that of reads.
  Status PinTables(PinnedTables* pinned) EXCLUDES(mutex_);
  /// The time at which a read that begins now gives up.
  Deadline ReadDeadline() const;
  /// The latest one.
  std::shared_ptr<const FollowerView> CurrentView() const;
  /// Whether reused memory may be behind the failure of a read.
  static bool Suspect(const Status& status) {
    return status.IsCorruption() || status.IsUnavailable();
  }
  /// A read that is tried more than once.
  struct Attempt {
    std::shared_ptr<const FollowerView> view;
    SequenceNumber snapshot = 0;
    Deadline deadline;
    /// PoolClient::membership_changes, if it was looked at before the last try.
    std::optional<uint64_t> membership;

    Attempt(std::shared_ptr<const FollowerView> of, SequenceNumber at, Deadline until)
        : view(std::move(of)), snapshot(at), deadline(until) {}
  };
  /// Decides after such a failure of a read of `family` whether to read again, in the attempt's
  /// view at its snapshot, which `keep` leaves as it is. If not, `*why` is the answer; if that is
  /// OK, the failure is the answer, and no node came or went meanwhile.
  bool ReadAgain(uint32_t family, bool keep, Attempt* attempt, Status* why) EXCLUDES(mutex_);
  /// What to answer for a failure of a read of `family` in `view` that stands. Damage where a table
  /// has a part on a node that cannot be reached is `Unavailable`: that node may have what is
  /// missing.
  Status Answer(const FollowerView& view, uint32_t family, const Status& failure) const;

 private:
  using Goal = FollowerState::Goal;
  static constexpr size_t kGoals = 3;

  /// What catching up for a goal, or for a higher one, has come to.
  struct Caught {
    uint64_t run = 0;  ///< The latest one that ended.
    Status status;
  };
  /// What runs have read.
  struct Looks {
    uint64_t log_bytes = 0;
    uint64_t manifest_bytes = 0;
    uint64_t manifest_reloads = 0;
  };
  /// What tables are read with: what is kept here of them, within the budgets that the options
  /// give.
  struct Reading {
    Reading(const DBOptions& options, std::shared_ptr<const TableKeys> given_keys);

    const std::unique_ptr<IndexMemory> indexes;   ///< Null: there is no budget.
    const std::unique_ptr<RecordCache> records;   ///< Null: there is no such cache.
    const std::shared_ptr<const TableKeys> keys;  ///< Null: there are none.
  };
  struct Counters {
    std::atomic<uint64_t> catch_ups{0};
    std::atomic<uint64_t> reads_again{0};  ///< Reads that met reused memory.
    /// When the last run began that did not fail, by the pool's clock.
    std::atomic<uint64_t> current_nanos{0};
  };

  FollowerDB(const DBOptions& options, const std::string& name, Mode mode,
             std::shared_ptr<const TableKeys> keys, std::shared_ptr<pool::PoolImpl> pool);

  /// Returns once a run for `goal` that began after this call has ended; how that went.
  Status CatchUp(Goal goal) EXCLUDES(mutex_);
  /// Calls `work` while no thread catches up, nor another one calls this.
  template <typename Work>
  Status WithState(const Work& work) EXCLUDES(mutex_);
  /// For metrics.
  FollowerProgress Progress() EXCLUDES(mutex_);
  /// Called by the running thread.
  void InstallView(std::shared_ptr<const FollowerView> view);
  void FollowLoop() EXCLUDES(mutex_);
  /// Catches up if `options` want that.
  Status Prepare(const ReadOptions& options) EXCLUDES(mutex_);
  /// Finds the family of this database's handle, or of null. `InvalidArgument` for another
  /// database's handle.
  Status FindFamily(ColumnFamilyHandle* handle, uint32_t* id) const;
  /// Has `read` look at the latest view, or the snapshot's, and again at later ones as long as it
  /// answers that some of the failures in `statuses` are suspect; these are answers then.
  template <typename Read>
  void ReadStatuses(const ReadOptions& options, ColumnFamilyHandle* handle,
                    std::span<Status> statuses, const Read& read) EXCLUDES(mutex_);
  void ReadKeys(const ReadOptions& options, ColumnFamilyHandle* handle, std::span<const Slice> keys,
                PinnableSlice* values, Status* statuses) EXCLUDES(mutex_);
  /// Looks once at one view. Returns whether some of the failures are suspect.
  bool LookUp(const FollowerView& whole, uint32_t family, SequenceNumber snapshot,
              std::span<const Slice> keys, PinnableSlice* values, Status* statuses) const;
  /// Whether there is no time for another try; `*why`: `TimedOut`.
  bool GivesUp(const Attempt& attempt, Status* why) const;
  /// The tier of a table that is loaded now: what of its point index there is room for.
  PointTier::Kind TierFor(const TableHandle& table) const;

  const DBOptions options_;
  const std::string name_;
  const Mode mode_;
  std::unique_ptr<ColumnFamilyHandle> default_handle_;
  const std::shared_ptr<pool::PoolImpl> pool_;
  pool::PoolClient* const client_;
  const std::unique_ptr<pool::TableStore> store_;
  const Reading reading_;
  const LookupSource lookup_source_{
      .client = client_,
      .store = store_.get(),
      .prepare = [this](const TableHandle& table) { return table.Load(TierFor(table)); },
      .finds_damage = false,
      .record_cache = reading_.records.get()};
  mutable EpochDomain epochs_;
  /// The current view, which current_view_ owns. Release by InstallView: pairs with Begin.
  std::atomic<const FollowerView*> view_{nullptr};
  /// Generation of the latest view, even if that is not shown. Release by InstallView: pairs with
  /// ReadAgain.
  std::atomic<uint64_t> latest_generation_{0};
  Counters counters_;

  Mutex mutex_;
  CondVar changed_{&mutex_};  ///< A run has ended.
  CondVar closing_{&mutex_};
  bool running_ GUARDED_BY(mutex_) = false;  ///< A thread catches up, which has state_ to itself.
  uint64_t runs_ GUARDED_BY(mutex_) = 0;     ///< Begun so far.
  Caught caught_[kGoals] GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
  bool close_begun_ GUARDED_BY(mutex_) = false;  ///< Set by the thread that ends the loop.
  bool close_ended_ GUARDED_BY(mutex_) = false;
  Looks looks_ GUARDED_BY(mutex_);
  FollowerState state_;                               ///< Used by the running thread.
  std::shared_ptr<const FollowerView> current_view_;  ///< Likewise; view_ views it.
  Thread follow_thread_;
  std::unique_ptr<FollowerMetrics> metrics_;  ///< Null if none are shown, and once it is closed.
};

}  // namespace nacre
