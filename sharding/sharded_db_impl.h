#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nacre/utilities/sharded_db.h"
#include "sharding/batch_parts.h"
#include "sharding/shard.h"
#include "sharding/shard_map.h"
#include "sharding/sharded_family.h"
#include "sharding/sharded_snapshot.h"
#include "sharding/snapshot_gate.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

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
  Status DestroyColumnFamilyHandle(ColumnFamilyHandle* family) override;
  ColumnFamilyHandle* DefaultColumnFamily() const override { return default_handle_.get(); }

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
  Status FlushWAL(bool sync) override;

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
  DBOptions GetDBOptions() const override { return shards_.front()->db()->GetDBOptions(); }
  Status SetOptions(ColumnFamilyHandle* family,
                    const std::unordered_map<std::string, std::string>& changes) override;
  Status SetDBOptions(const std::unordered_map<std::string, std::string>& changes) override;
  std::vector<ShardInfo> GetShards() const override;

 private:
  using Families = std::map<uint32_t, std::shared_ptr<const ShardedFamily>>;

  ShardedDBImpl(const ShardedOptions& options, std::string name);

  // ---- sharded_open.cc ----
  Status OpenMap(const ShardedOptions& options);
  Status MakeShards(const ShardedOptions& options);
  Status OpenShards(const ShardedOptions& options,
                    const std::vector<ColumnFamilyDescriptor>& families);
  Status OpenShard(const ShardedOptions& options,
                   const std::vector<ColumnFamilyDescriptor>& families, size_t index,
                   std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles);
  /// Returns when it is durable.
  Status SaveMap(const ShardMap& map);

  // ---- sharded_families.cc ----
  /// `*found` is null for the default family. `InvalidArgument`: the handle is of another database.
  Status Find(ColumnFamilyHandle* handle, const ShardedFamily** found) const {
    *found = nullptr;
    return handle == nullptr || handle == default_handle_.get() ? Status::OK()
                                                                : FindOther(handle, found);
  }
  Status FindOther(ColumnFamilyHandle* handle, const ShardedFamily** found) const;
  /// For DivideBatch.
  FindShardedFamily FindById() const EXCLUDES(families_mutex_);
  bool HasFamily(const std::string& name) const;
  /// OK if the families named are those that there are; with `may_miss`, or more.
  Status CheckNamed(const std::vector<ColumnFamilyDescriptor>& families, bool may_miss) const;
  void Install(std::shared_ptr<const ShardedFamily> family) EXCLUDES(families_mutex_);
  ColumnFamilyHandle* MakeHandle(const std::string& name) EXCLUDES(families_mutex_);
  static ColumnFamilyHandle* Of(const ShardedFamily* family, size_t shard) {
    return family == nullptr ? nullptr : family->of_shard(shard);
  }

  // ---- sharded_writes.cc ----
  /// Calls `work` while no batch over several shards is about to write `keys()`, and not before a
  /// snapshot that is being taken when this is called.
  template <typename Keys, typename Work>
  Status In(Shard* shard, const Keys& keys, const Work& work);
  template <typename Work>
  Status WriteKey(ColumnFamilyHandle* handle, const Slice& key, const Work& work);
  /// A batch that is not one shard's as it is.
  Status WriteDivided(const WriteOptions& options, const WriteBatch& updates);
  Deadline OperationDeadline() const { return Deadline::After(clock_, operation_timeout_); }

  // ---- sharded_reads.cc ----
  template <typename Work>
  Status ReadKey(const ReadOptions& options, ColumnFamilyHandle* handle, const Slice& key,
                 const Work& work);
  std::unique_ptr<Iterator> NewShardIterator(const ReadOptions& options,
                                             const ShardedFamily* family, size_t index);
  /// A snapshot of all shards, of the latest state.
  std::shared_ptr<ShardedSnapshot> TakeSnapshot();
  /// That of the options, or else a new one.
  std::shared_ptr<const ShardedSnapshot> SnapshotOf(const ReadOptions& options);

  // ---- sharded_all.cc ----
  /// Calls `work(shard)` for each, and answers the first failure.
  template <typename Work>
  Status ForEachShard(const Work& work) const;
  /// Calls `work(shard index, begin, end)` for each shard that has keys of the range; null means
  /// that there is no bound.
  template <typename Work>
  Status ForEachShardIn(const Slice* begin, const Slice* end, const Work& work) const;

  const std::string name_;
  Clock* const clock_;
  const std::chrono::milliseconds operation_timeout_;
  const std::shared_ptr<const SliceTransform> prefix_extractor_;

  /// Has the map of the shards, and makes this process the owner of the keyspace.
  std::unique_ptr<DB> map_db_;
  ShardMap map_;  ///< The shards do not change while it is open; families do, under change_mutex_.
  uint64_t opening_ = 0;  ///< How often the keyspace was opened, this time included.
  std::vector<std::unique_ptr<Shard>> shards_;  ///< In the order of their keys.
  /// The families' ids in all shards are those in the keyspace, so batches fit as they are.
  std::atomic<bool> same_ids_{true};
  std::unique_ptr<ColumnFamilyHandle> default_handle_;

  SnapshotGate gate_;
  std::atomic<uint64_t> snapshots_{0};  ///< Those of the application.
  std::atomic<KeyHolds::BatchId> next_batch_{1};

  Mutex change_mutex_;  ///< A change of the families is under way.
  mutable Mutex families_mutex_ ACQUIRED_AFTER(change_mutex_);
  Families families_ GUARDED_BY(families_mutex_);  ///< Without the default one.
  bool closed_ = false;
  Status close_status_;
};

template <typename Keys, typename Work>
Status ShardedDBImpl::In(Shard* shard, const Keys& keys, const Work& work) {
  if (gate_.taking()) [[unlikely]]
    gate_.AwaitTaken();
  for (;;) {
    {
      // This, and then the look at what is held: see Shard.
      const EpochDomain::Guard guard(shard->operations());
      if (!shard->holds()->any() || !shard->holds()->Overlaps(keys())) [[likely]]
        return work();
    }
    NACRE_RETURN_IF_ERROR(shard->holds()->Await(keys(), OperationDeadline()));
  }
}

}  // namespace nacre
