#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/utilities/sharded_db.h"
#include "sharding/local_owner.h"
#include "sharding/local_shard.h"
#include "sharding/shard_map.h"
#include "util/mutex.h"

namespace nacre {

/// The databases of a keyspace: the one that has the map, and one for each shard.
///
/// Thread safety: OpenShard may be called from many threads at once, all else by one at a time.
class ShardOpener {
 public:
  /// How many shards are opened or closed at a time. Each of them asks all nodes, by threads of its
  /// own at first; with many more at a time the last ones would time out.
  static constexpr size_t kAtOnce = 16;

  /// `families` are those that the keyspace is opened with, the default one among them. All of
  /// `options` have a pool. Shards that it opens belong to `owner`, and may move from one process
  /// to another if `options` have a coordinator.
  ShardOpener(const ShardedOptions& options, std::string name,
              std::vector<ColumnFamilyDescriptor> families, std::shared_ptr<LocalOwner> owner);

  const ShardedOptions& options() const { return options_; }
  const std::string& name() const { return name_; }

  /// Opens the database that has the map, which makes this process the owner of the keyspace, and
  /// reads the map. Makes the keyspace if there is none (`Options::create_if_missing`).
  Status OpenMap(ShardMap* map);
  /// The same, but makes nothing: fails if there is no keyspace, or it is only being made.
  Status OpenMadeMap(ShardMap* map);
  /// Returns when it is durable.
  Status SaveMap(const ShardMap& map);
  /// Fails if another process has taken the database over that has the map, or it cannot be read.
  Status CheckMap() const;
  /// How often the keyspace was opened, this time included.
  Status CountOpening(uint64_t* opening);
  Status CloseMap();

  /// OK if the families named are those that `map` has; with
  /// `DBOptions::create_missing_column_families`, or more.
  Status CheckFamilies(const ShardMap& map) const;
  /// Null if it was not named.
  const ColumnFamilyDescriptor* Find(const std::string& family) const;
  /// What a family is opened with in a shard. `InvalidArgument` if this process was not told of it,
  /// and cannot use the options that the map has for it.
  Status DescriptorOf(const ShardMap::Family& family, ColumnFamilyDescriptor* descriptor) const;
  const std::vector<ColumnFamilyDescriptor>& families() const { return families_; }
  /// Those of ShardMap::kPreparedFamily.
  ColumnFamilyOptions PreparedFamilyOptions() const;

  /// Opens the database of a shard. What an earlier process left of batches is not settled. One
  /// that is not whole is made anew from those that the map says it is made of.
  Status OpenShard(const ShardMap& map, size_t index, std::shared_ptr<LocalShard>* shard) const
      EXCLUDES(remake_mutex_);
  /// Deletes the database of a shard that there is no more, or never was. `Busy` while it is open.
  Status DestroyShard(uint32_t id) const;

  // ---- For ShardReshaper ----

  /// The shard whose database was opened as `engine`, with all families.
  std::shared_ptr<LocalShard> MakeShard(const ShardMap& map, uint32_t id,
                                        std::unique_ptr<DBImpl> engine) const;
  /// Deletes what an earlier attempt to make the shard may have left of its database, whichever
  /// process has it.
  Status ClearTarget(const ShardMap& map, uint32_t id) const;

 private:
  LocalShard::Context ContextOfShards() const;
  /// The families of the keyspace in a shard, the default one first.
  Status DescriptorsOf(const ShardMap& map, std::vector<ColumnFamilyDescriptor>* families) const;
  /// Without what is left of batches. `Incomplete` or `NotFound` if it has not been made yet.
  Status OpenDatabase(const ShardMap& map, uint32_t id, std::shared_ptr<LocalShard>* shard) const;
  /// Makes the shard from its sources. It leaves alone those that are made of the same ones: they
  /// may be open, here or at another member.
  Status Remake(const ShardMap& map, const ShardMap::Shard& shard) const REQUIRES(remake_mutex_);
  /// `NotFound` if the database that has the map has none yet.
  Status ReadMap(ShardMap* map) const;
  Status MakeShards(ShardMap* map);

  const ShardedOptions options_;
  const std::string name_;
  const std::vector<ColumnFamilyDescriptor> families_;
  const std::shared_ptr<LocalOwner> owner_;
  std::unique_ptr<DB> map_db_;
  mutable Mutex remake_mutex_;  ///< One thread at a time opens the sources.
};

}  // namespace nacre
