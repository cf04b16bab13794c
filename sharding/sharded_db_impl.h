#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "nacre/utilities/sharded_db.h"
#include "sharding/batches/batch_parts.h"
#include "sharding/local_owner.h"
#include "sharding/local_shard.h"
#include "sharding/remote/member_messages.h"
#include "sharding/reshaping/local_reshaping.h"
#include "sharding/shard_opener.h"
#include "sharding/sharded_family.h"
#include "sharding/sharded_view.h"
#include "sharding/snapshots/recent_snapshot.h"
#include "sharding/snapshots/sharded_snapshot.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

class KeyspaceMember;
class LocalBalancer;
class SharedFamilies;

/// See ShardedDB. Split by concern into sharded_*.cc, as the sections below say.
class ShardedDBImpl final : public ShardedDB {
 public:
  static Status Open(const ShardedOptions& options, const std::string& name,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<ShardedDB>* db);
  ~ShardedDBImpl() override;

  using DB::CreateColumnFamilies;
  using DB::MultiGet;

  // ---- sharded_open.cc ----
  Status Close() override;

  // ---- sharded_families.cc ----
  Status CreateColumnFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                              std::vector<ColumnFamilyHandle*>* handles) override
      EXCLUDES(change_mutex_);
  Status DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& families) override
      EXCLUDES(change_mutex_);
  Status OpenColumnFamily(const std::string& name, ColumnFamilyHandle** handle) override
      EXCLUDES(change_mutex_);
  Status DestroyColumnFamilyHandle(ColumnFamilyHandle* family) override;
  ColumnFamilyHandle* DefaultColumnFamily() const override { return families_.default_handle(); }

  // ---- sharded_writes.cc ----
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

  // ---- sharded_reads.cc ----
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
  bool KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                   std::string* value, bool* value_found) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options,
                                        ColumnFamilyHandle* family) override;
  Status NewIterators(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                      std::vector<std::unique_ptr<Iterator>>* iterators) override;
  const Snapshot* GetSnapshot() override;
  void ReleaseSnapshot(const Snapshot* snapshot) override;

  // ---- sharded_all.cc: what is asked of all shards ----
  Status FlushWAL(bool sync) override;
  Status Flush(const FlushOptions& options, ColumnFamilyHandle* family) override;
  Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family,
                      const Slice* begin, const Slice* end) override;
  Status WaitForCompact() override;
  Status SuggestCompactRange(ColumnFamilyHandle* family, const Slice* begin,
                             const Slice* end) override;
  Status PauseBackgroundWork() override;
  Status ContinueBackgroundWork() override;
  Status EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& families) override;
  void DisableManualCompaction() override;
  void EnableManualCompaction() override;
  Status Resume() override;
  Status VerifyChecksum() override;
  bool GetProperty(ColumnFamilyHandle* family, const Slice& property, std::string* value) override;
  bool GetIntProperty(ColumnFamilyHandle* family, const Slice& property, uint64_t* value) override;
  bool GetMapProperty(ColumnFamilyHandle* family, const Slice& property,
                      std::map<std::string, std::string>* value) override;
  bool GetAggregatedIntProperty(const Slice& property, uint64_t* value) override;
  Status ResetStats() override;
  Status GetApproximateSizes(ColumnFamilyHandle* family, const Range* ranges, int n,
                             uint64_t* sizes) override;
  void GetApproximateMemTableStats(ColumnFamilyHandle* family, const Range& range, uint64_t* count,
                                   uint64_t* size) override;
  void GetLiveTablesMetaData(std::vector<LiveTableMetaData>* tables) override;
  void GetColumnFamilyMetaData(ColumnFamilyHandle* family, ColumnFamilyMetaData* metadata) override;
  int NumberLevels(ColumnFamilyHandle* family) override;
  const std::string& GetName() const override { return name_; }
  uint64_t GetLatestSequenceNumber() const override;
  Options GetOptions(ColumnFamilyHandle* family) const override;
  DBOptions GetDBOptions() const override;
  Status SetOptions(ColumnFamilyHandle* family,
                    const std::unordered_map<std::string, std::string>& changes) override;
  Status SetDBOptions(const std::unordered_map<std::string, std::string>& changes) override;
  std::vector<ShardInfo> GetShards() const override;
  Status NewAsyncDB(AsyncExecutor* executor, std::unique_ptr<AsyncDB>* async) override;

  // ---- sharded_reshaping.cc ----
  Status SplitShard(uint32_t shard, const Slice& key) override EXCLUDES(change_mutex_);
  Status MergeShards(uint32_t low, uint32_t high) override EXCLUDES(change_mutex_);
  Status SetBalance(const std::unordered_map<std::string, std::string>& changes) override
      EXCLUDES(change_mutex_);
  std::unordered_map<std::string, std::string> GetBalance() const override;

  // ---- sharded_members.cc: with a coordinator ----
  Status GetMembers(std::vector<ShardMember>* members) const override;
  Status MoveShard(uint32_t shard, int64_t member) override;
  Status DrainMember(int64_t member, bool drain) override;
  Status AskMember(int64_t member, const Slice& request, std::chrono::milliseconds timeout,
                   std::string* answer) override;

 private:
  friend class MemberLocks;
  friend class MembersBelow;
  friend class ShardedChecks;
  friend class ShardedLocks;

  ShardedDBImpl(const ShardedOptions& options, std::string name,
                const std::vector<ColumnFamilyDescriptor>& families);

  // ---- sharded_open.cc ----
  /// Opens all shards in this process.
  Status OpenAlone();

  // ---- sharded_members.cc ----
  /// Opens those that are this member's.
  Status OpenAsMember();
  /// Calls `work` with views that come later, as a shard has moved, for as long as an operation may
  /// take.
  Status WithLaterViews(const std::function<Status(const ShardedView& view)>& work);

  // ---- sharded_reshaping.cc ----
  /// Returns when the shard that has `key` answers, which is none of `gone`.
  Status AwaitReshaped(const std::vector<uint32_t>& gone, const std::string& key);

  /// Calls `work(view)` with the latest view, and again if a shard has moved meanwhile.
  template <typename Work>
  Status WithView(const Work& work);
  /// Calls `work(db, handle)` for keys of `family` in `shard`.
  template <typename Keys, typename Work>
  Status ReadIn(Shard* shard, const ShardedFamily& family, const Keys& keys, const Work& work);

  // ---- sharded_writes.cc ----
  template <typename Work>
  Status WriteKey(ColumnFamilyHandle* handle, const Slice& key, const Work& work);
  /// A batch that is not one shard's.
  Status WriteDivided(const ShardedView& view, const WriteOptions& options,
                      const WriteBatch& updates);
  std::string NextBatch();
  Deadline OperationDeadline() const { return Deadline::After(clock_, operation_timeout_); }

  // ---- sharded_reads.cc ----
  template <typename Work>
  Status ReadKey(const ReadOptions& options, ColumnFamilyHandle* handle, const Slice& key,
                 const Work& work);
  std::unique_ptr<Iterator> NewIteratorAt(const ReadOptions& options,
                                          std::shared_ptr<const ShardedSnapshot> snapshot,
                                          std::shared_ptr<const ShardedFamily> family);
  /// A snapshot of all shards, of the latest state.
  Status TakeSnapshot(std::shared_ptr<ShardedSnapshot>* snapshot);
  /// That of the options, or else a new one.
  Status SnapshotOf(const ReadOptions& options, std::shared_ptr<const ShardedSnapshot>* snapshot);

  // ---- sharded_all.cc ----
  /// Calls `work(shard, handle)` for the shard that has a key, or the first one, and for each,
  /// which answers the first failure. `*next`: where the next shard begins; none: it was the last
  /// one.
  template <typename Work>
  Status OnShardOf(const std::optional<std::string>& key, const ShardedFamily& family,
                   const Work& work, std::optional<std::string>* next) const;
  template <typename Work>
  Status ForEachShard(const ShardedFamily& family, const Work& work) const;
  /// Calls `work(shard, handle, begin, end)` for each shard that has keys of the range; null means
  /// that there is no bound.
  template <typename Work>
  Status ForEachShardIn(const ShardedFamily& family, const Slice* begin, const Slice* end,
                        const Work& work) const;

  // ---- sharded_families.cc ----
  /// Without a coordinator.
  Status MakeFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                      std::vector<ColumnFamilyHandle*>* handles) REQUIRES(change_mutex_);

  const std::string name_;
  Clock* const clock_;
  const std::chrono::milliseconds operation_timeout_;

  std::string batch_prefix_;  ///< What the names of batches begin with, in this process alone.
  const std::shared_ptr<LocalOwner> owner_;
  const std::shared_ptr<ShardedViews> views_;  ///< None before it is open.
  const std::unique_ptr<ShardOpener> opener_;
  ShardedFamilies families_;
  // Null without a coordinator.
  std::unique_ptr<KeyspaceMember> member_;
  std::unique_ptr<SharedFamilies> shared_families_;

  RecentSnapshot recent_;               ///< Without a coordinator.
  std::atomic<uint64_t> snapshots_{0};  ///< Those of the application.
  std::atomic<uint64_t> next_batch_{1};

  Mutex change_mutex_;        ///< A change of the families or the shards is under way.
  LocalReshaping reshaping_;  ///< Without a coordinator, as the next one.
  std::unique_ptr<LocalBalancer> balancer_;
  bool closed_ = false;
  Status close_status_;
};

template <typename Work>
Status ShardedDBImpl::WithView(const Work& work) {
  {
    const ShardedViews::Pin view(views_.get());
    Status status = work(*view);
    if (!status.IsFenced() || !views_->MayChange(*view)) [[likely]]
      return status;
  }
  return WithLaterViews(work);
}

template <typename Keys, typename Work>
Status ShardedDBImpl::ReadIn(Shard* shard, const ShardedFamily& family, const Keys& keys,
                             const Work& work) {
  const auto call = [&]() -> Status {
    ColumnFamilyHandle* handle = nullptr;
    NACRE_RETURN_IF_ERROR(family.HandleIn(*shard, &handle));
    return work(shard->db(), handle);
  };
  return shard->local() == nullptr ? call() : shard->local()->Read(keys, call);
}

}  // namespace nacre
