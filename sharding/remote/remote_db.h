#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nacre/comparator.h"
#include "nacre/db.h"
#include "sharding/remote/member_exchange.h"
#include "sharding/remote/remote_owner.h"
#include "sharding/remote/remote_snapshot.h"
#include "sharding/remote/shard_followers.h"
#include "sharding/shard_map.h"

namespace nacre {

/// The database of a shard that another member serves: each operation is a request to that. It
/// makes no families, and what has no request is answered as if there were nothing.
///
/// Families and snapshots that are given to it are its own.
///
/// Thread safety: as DB.
class RemoteDB final : public DB {
 public:
  /// `families` are those of the keyspace, without the default one. `followers` outlives it.
  RemoteDB(uint32_t shard, std::string name, const std::vector<ShardMap::Family>& families,
           const Comparator* comparator, std::shared_ptr<RemoteOwner> owner,
           ShardFollowers* followers);
  ~RemoteDB() override;

  using DB::CreateColumnFamilies;
  using DB::Get;
  using DB::MultiGet;

  /// As Shard::Handle.
  ColumnFamilyHandle* Handle(uint32_t family) const;

  Status Close() override { return Status::OK(); }
  const std::string& GetName() const override { return name_; }

  // ---- Families. Their handles stay as long as this. ----
  Status CreateColumnFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                              std::vector<ColumnFamilyHandle*>* handles) override;
  Status DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& families) override;
  Status DestroyColumnFamilyHandle(ColumnFamilyHandle* /*family*/) override { return Status::OK(); }
  ColumnFamilyHandle* DefaultColumnFamily() const override { return default_family_.get(); }

  // ---- Writes ----
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

  // ---- Reads ----
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             PinnableSlice* value) override;
  Status GetMergeOperands(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                          PinnableSlice* merge_operands,
                          GetMergeOperandsOptions* get_merge_operands_options,
                          int* number_of_operands) override;
  void MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                const Slice* keys, PinnableSlice* values, Status* statuses) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options,
                                        ColumnFamilyHandle* family) override;
  /// Null if the member cannot give one.
  const Snapshot* GetSnapshot() override;
  /// The same, and says why not: `Fenced`, if the shard has moved.
  Status TakeSnapshot(std::unique_ptr<RemoteSnapshot>* snapshot);
  void ReleaseSnapshot(const Snapshot* snapshot) override;

  // ---- remote_db_requests.cc: DatabaseRequest ----
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
  int NumberLevels(ColumnFamilyHandle* family) override;
  /// 0 if the member cannot be asked.
  uint64_t GetLatestSequenceNumber() const override;
  Status SetOptions(ColumnFamilyHandle* family,
                    const std::unordered_map<std::string, std::string>& changes) override;
  Status SetDBOptions(const std::unordered_map<std::string, std::string>& changes) override;
  /// Those that the member uses are not known here: the default ones, save for the comparator.
  Options GetOptions(ColumnFamilyHandle* family) const override;

 private:
  using Unanswered = RemoteOwner::Unanswered;

  Status NotHere(const char* method) const;
  Status Send(const WriteOptions& options, const WriteBatch& updates);
  /// Reads `keys`; without a failure `*exchange` has as many values.
  Status Read(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
              const Slice* keys, MemberExchange* exchange);

  /// The follower that may answer reads with `options`; null: the owner is asked.
  std::shared_ptr<ShardFollower> FollowerFor(const ReadOptions& options) const;

  // ---- remote_db_requests.cc ----
  Status Ask(MemberExchange* exchange, Unanswered unanswered = Unanswered::kRetry) const;
  /// For what takes as long as it takes.
  Status AskAndSleep(MemberExchange* exchange, Unanswered unanswered = Unanswered::kRetry) const;
  /// Whether there is such a property, as far as the member can be asked.
  bool AskForProperty(MemberExchange* exchange, ColumnFamilyHandle* family,
                      const Slice& property) const;

  const uint32_t shard_;
  const std::string name_;
  const Comparator* const comparator_;
  const std::shared_ptr<RemoteOwner> owner_;
  ShardFollowers* const followers_;
  const std::unique_ptr<ColumnFamilyHandle> default_family_;
  std::map<uint32_t, std::unique_ptr<ColumnFamilyHandle>> families_;  ///< The others, by their ids.
};

}  // namespace nacre
